#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tests/run.sh [--preset NAME] [--built] [CTEST OPTIONS...]
# Sets the machine up (apt; root or sudo), builds everything and runs all tests.
#   --preset NAME   release (default), debug, asan, tsan or gate
#   --built         build nothing: run what is there
# Other options go to ctest, for example:
#   tests/run.sh -R Rref            only tests whose names match
#   tests/run.sh -R Rref --verbose  and show what they print
#   tests/run.sh -LE timing         none of those that a slow machine fails
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

preset=release
built=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '5,12s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
    --preset) preset=${2:?"--preset needs a name"}; shift 2 ;;
    --preset=*) preset=${1#*=}; shift ;;
    --built) built=1; shift ;;
    *) break ;;
  esac
done

[ -n "$built" ] || "$root/tools/build.sh" "$preset"
cd "$root"
# Most tests wait for others most of the time: three share a core, and those that
# compute say that they need as much (cmake/BatonTests.cmake).
exec ctest --preset "$preset" --parallel "$((3 * $(nproc)))" "$@"
