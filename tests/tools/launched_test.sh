#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: launched_test.sh BIN
# Three processes as mpiexec starts them, told their ranks by the environment alone,
# are a cluster that ends when its trainer does.
set -euo pipefail
cd "${1:?usage: launched_test.sh BIN}"
unset BATON_NAME BATON_RANK BATON_RENDEZVOUS BATON_WORLD_SIZE BATON_PEERS
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

start() {  # RANK
  PMI_RANK=$1 PMI_SIZE=3 ./toy_model --rendezvous="unix:$folder/meet"
}
start 1 &
first=$!
start 2 &
second=$!
start 0 | tee "$folder/printed"
wait "$first"
wait "$second"
grep -q '^step 20: loss' "$folder/printed"
