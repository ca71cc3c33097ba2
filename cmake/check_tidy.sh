#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: cmake/check_tidy.sh BUILD_TREE [BASE]
# Runs clang-tidy on the sources that commits since BASE changed, or whose headers
# they changed, twelve at most, the last first; the analyze preset reads all. Each
# is read by itself, which shows that it includes what it needs; so are as many
# changed headers that no source includes first (baton_headers_alone). BASE is where the
# branch left origin/main or, on main itself, twenty commits ago. The tree must be
# one that clang builds (preset asan); sources that it builds in batches are read
# with the flags of their neighbours.
set -euo pipefail
tree=$(cd "${1:?usage: cmake/check_tidy.sh BUILD_TREE [BASE]}" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
most=12

base=${2-$(git merge-base HEAD origin/main 2>/dev/null || true)}
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
  base=$(git rev-list --first-parent -n 21 HEAD | tail -n 1)
fi
changed() {
  git log --format= --name-only --diff-filter=AM "$base..HEAD" -- "$@" \
    ':!core/cuda' ':!models/torch' ':!tests/models/torch' ':!examples/torch' \
    ':!tools/mpi' ':!tests/tools/mpi' ':!examples/tutorial' ':!tests/out_of_tree' \
    ':!tests/rpc/compile_fail' |
    awk '!seen[$0]++'
}

objects=()
for header in $(changed '*.h'); do
  stem=${header%.h}
  object=CMakeFiles/baton_headers_alone.dir/headers/${stem//\//_}.cc.o
  if [ -f "$header" ] && grep -q "^build $object:" "$tree/build.ninja"; then
    objects+=("$object")
  fi
done
objects=("${objects[@]:0:$most}")
mapfile -t precompiled < <(grep -oP '^build \K\S+\.gch(?=:)' "$tree/build.ninja")
ninja -C "$tree" "${objects[@]}" "${precompiled[@]}"

files=()
for file in $(changed '*.cc' '*.h' | sed 's/\.h$/.cc/' | awk '!seen[$0]++'); do
  [ ! -f "$file" ] || files+=("$file")
done
total=${#files[@]}
files=("${files[@]:0:$most}")
[ "$total" -gt 0 ] || { echo "no source changed since $base"; exit; }
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" \
  clang-tidy-14 --quiet -p "$tree" 2> >(
    grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -header' >&2)
echo "${#files[@]} of $total changed sources read with clang-tidy"
