#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tests/run.sh [--preset NAME] [--built] [CTEST OPTIONS...]
# Sets the machine up (apt; root or sudo), builds everything and runs all tests.
#   --preset NAME   release (default), debug, asan, tsan or gate
#   --built         build nothing: run what is there
#   --second-try    tests that failed run once more, one at a time, and are named;
#                   only those that fail again fail the run
# Other options go to ctest, for example:
#   tests/run.sh -R Rref            only tests whose names match
#   tests/run.sh -R Rref --verbose  and show what they print
#   tests/run.sh -LE timing         none of those that a slow machine fails
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

preset=release
built=''
second_try=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '5,14s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
    --preset)
      [ $# -gt 1 ] || { echo "run: --preset needs a name, as release" >&2; exit 2; }
      preset=$2; shift 2 ;;
    --preset=*) preset=${1#*=}; shift ;;
    --built) built=1; shift ;;
    --second-try) second_try=1; shift ;;
    *) break ;;
  esac
done

[ -n "$built" ] || "$root/tools/build.sh" "$preset"
cd "$root"
# Most tests wait for others most of the time: three share a core, and those that
# compute say that they need as much (cmake/BatonTests.cmake).
ctest --preset "$preset" --parallel "$((3 * $(nproc)))" "$@" && exit
status=$?
failed=build/$preset/Testing/Temporary/LastTestsFailed.log
[ -n "$second_try" ] && [ -s "$failed" ] || exit "$status"

names=$(cut -d: -f2- "$failed")
printf '\nOnce more, one at a time, what failed:\n%s\n' "$names"
ctest --preset "$preset" --parallel 1 --rerun-failed
printf '\nPassed at the second try only, so either the test or the product has a defect:\n%s\n' \
  "$names"
