#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tests/run.sh [--preset NAME] [CTEST OPTIONS...]
# Sets the machine up (apt; root or sudo), builds everything and runs all tests.
#   --preset NAME   release (default), debug, asan or tsan
# Other options go to ctest, for example:
#   tests/run.sh -R Rref            only tests whose names match
#   tests/run.sh -R Rref --verbose  and show what they print
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

preset=release
case ${1-} in
  -h | --help) sed -n '5,10s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
  --preset) preset=${2:?"--preset needs a name"}; shift 2 ;;
  --preset=*) preset=${1#*=}; shift ;;
esac

"$root/tools/build.sh" "$preset"
cd "$root"
exec ctest --preset "$preset" --parallel "$(nproc)" "$@"
