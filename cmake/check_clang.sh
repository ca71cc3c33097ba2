#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: cmake/check_clang.sh BUILD_TREE [FILE...]
# Reads every header alone and every source but the tests with clang, without making code:
# each header must stand by itself, and a wrong use of a lock that is annotated
# (core/mutex.h) is an error. The build tree lends the generated headers.
set -euo pipefail
tree=$(cd "${1:?usage: cmake/check_clang.sh BUILD_TREE [FILE...]}" && pwd)
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v clang++-14 >/dev/null ||
  { echo "check_clang: no clang++-14; run tools/setup.sh --ci" >&2; exit 1; }

[ $# -gt 0 ] || set -- $(find autograd core examples models optim rpc tools \
  tests/support \( -name '*.h' -o -name '*.cc' \) -print | sort)
# CUDA's headers lie where the tree's build found them; without them core/cuda is
# left out.
cuda=$(grep -oE -- '-(isystem |I)[^ "]*cuda[^ "]*/include' \
  "$tree/compile_commands.json" | sort -u | head -n 1 || true)
if ! grep -q '/core/cuda/' "$tree/compile_commands.json"; then
  set -- $(printf '%s\n' "$@" | grep -v '^core/cuda/')
fi
if ! grep -q '/core/cuda/cupti/' "$tree/compile_commands.json"; then
  set -- $(printf '%s\n' "$@" | grep -v '^core/cuda/cupti/')
fi
if ! grep -q '/core/cuda/nccl/' "$tree/compile_commands.json"; then
  set -- $(printf '%s\n' "$@" | grep -v '^core/cuda/nccl/')
fi
export tree cuda
check() {
  echo "#include \"$1\"" | clang++-14 -fsyntax-only -x c++ -std=c++20 -I. \
    "-I$tree" $cuda '-DBATON_GOLDEN_DIR=""' \
    '-DBATON_CUPTI_SONAME=""' '-DBATON_CUPTI_LIBRARY=""' \
    '-DBATON_NCCL_SONAME=""' '-DBATON_NCCL_LIBRARY=""' \
    -fopenmp -Wthread-safety -Werror=thread-safety \
    -Wno-ignored-attributes -Wno-unknown-pragmas - ||
    { echo "check_clang: $1 is not sound (see above)" >&2; return 1; }
}
export -f check
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} bash -c 'check {}'
echo "$# files are sound"
