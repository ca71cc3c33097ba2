#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tools/build.sh PRESET [TARGET...]
# Sets the machine up, configures a preset of CMakePresets.json where that has
# not been done, and builds the targets (all, where none is named) into
# build/PRESET. What is up to date takes no time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1-} in
  '' | -*) sed -n '5,8s/^# \?//p' tools/build.sh; [ "${1-}" = --help ]; exit ;;
esac
preset=$1
shift
tree=build/$preset

if [ "$preset" = analyze ]; then tools/setup.sh --ci; else tools/setup.sh; fi

if [ ! "$tree/build.ninja" -nt CMakePresets.json ]; then
  echo "build: configuring $tree"
  mkdir -p "$tree"
  if ! cmake --preset "$preset" >"$tree/configure.log" 2>&1; then
    cat "$tree/configure.log" >&2
    echo "build: configuring $tree failed (see above)" >&2
    exit 1
  fi
  grep -E '^-- (CUDA|ccache)' "$tree/configure.log" || true
  touch "$tree/build.ninja"
fi

if ! ninja -C "$tree" "${@:-all}"; then
  echo "build: building $tree failed (see above)" >&2
  exit 1
fi
