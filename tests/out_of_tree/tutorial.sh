#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tests/out_of_tree/tutorial.sh INSTALLED
# Types what docs/tutorial.md has a reader type once Baton is installed.
set -euo pipefail
installed=$1
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../examples/tutorial" && pwd)
HOME=$(mktemp -d)
trap 'rm -rf "$HOME"' EXIT
mkdir "$HOME/opt" "$HOME/parts"
ln -s "$installed" "$HOME/opt/baton"
cp "$project"/* "$HOME/parts"
cd "$HOME/parts"

# [build]
export PATH=$HOME/opt/baton/bin:$PATH CMAKE_PREFIX_PATH=$HOME/opt/baton
cmake -S . -B build -D CMAKE_BUILD_TYPE=Release
cmake --build build -j 2
# [end]

# [run]
baton-run --workers=2 --worker_flags=--plugin=build/libpart.so -- build/trainer
# [end]

# On a port that is free here, and out of the sight of other tests.
port=$(python3 -c 'import socket
with socket.socket() as s: s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export BATON_RENDEZVOUS=127.0.0.1:$port BATON_WORLD_SIZE=3 TMPDIR=$HOME
# [daemons]
baton-rendezvous --listen=$BATON_RENDEZVOUS &
baton-worker --name=worker1 --plugin=build/libpart.so &
baton-worker --name=worker2 --plugin=build/libpart.so &
build/trainer
batonctl status
kill $(jobs -p)
# [end]
wait || true
