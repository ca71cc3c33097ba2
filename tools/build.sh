#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tools/build.sh PRESET [TARGET...]
# Installs missing packages, configures a preset of CMakePresets.json if that has
# not been done, and builds the targets (default: all) into build/PRESET. Targets
# that are up to date take no time. ccache shares compilations between trees and
# clones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case ${1-} in
  -h | --help) sed -n '5,9s/^# \?//p' tools/build.sh; exit ;;
esac
presets=$(sed -n '/"configurePresets"/,/"buildPresets"/s/.*"name": "\(.*\)".*/\1/p' \
  CMakePresets.json | grep -vx base)
if ! grep -qxF -e "${1-}" <<<"$presets"; then
  echo "build: there is no preset '${1-}'; there are" $presets >&2
  exit 2
fi
preset=$1
shift
tree=build/$preset

case $preset in
  analyze | asan | fuzz | gate | cuda) tools/setup.sh --ci ;;
  *) tools/setup.sh ;;
esac

# Lets clones in other folders share compilations, also with precompiled headers,
# whose macros ccache otherwise cannot check. With CCACHE_DEPEND, ccache reads
# the compiler's list of dependencies, which saves a run of the preprocessor.
export CCACHE_BASEDIR=${CCACHE_BASEDIR-$PWD} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros}

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

# The unity sources that CMake generates contain paths in this clone, so ccache
# would take them for different sources in each clone. Replaces these paths by
# ones relative to the project's root, which is searched for headers.
name_batches_from_root() {
  local batches
  batches=$(find "$tree" \( -path '*/Unity/*.cxx' -o -name cmake_pch.hxx \) \
    -exec grep -l -F "#include \"$PWD/" {} +) || true  # named so already
  [ -z "$batches" ] || sed -i "s|#include \"$PWD/|#include \"|" $batches
}
ninja -C "$tree" build.ninja >/dev/null || true  # the build says what is wrong
name_batches_from_root

if ! ninja -C "$tree" "${@:-all}"; then
  echo "build: building $tree failed (see above)" >&2
  exit 1
fi
