#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: examples/quickstart.sh [--quick] [OPTIONS OF resnet50_pipeline...]
# Sets the machine up (apt; root or sudo), builds, and trains ResNet50 in three
# forms over worker processes of this machine: one worker on half of the cores,
# two workers split after layer2, two workers pipelined. Prints a table and
# writes JSON lines and charts to build/quickstart.
#   --quick       one small batch a variant, or a fifth of CIFAR-10: a minute
#   --preset NAME with another preset of CMakePresets.json than release
#   --data PATH   train a small ResNet18 on real images instead, for example on
#                 CIFAR-10 as a .tgz of class folders, and test it
# All options: build/release/bin/resnet50_pipeline --help
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

quick=''
preset=release
data=''
options=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '5,14s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
    --quick) quick=1 ;;
    --preset)
      [ $# -gt 1 ] || { echo "quickstart: --preset needs a name, as release" >&2; exit 2; }
      preset=$2; shift ;;
    --preset=*) preset=${1#*=} ;;
    *)
      case $1 in --data | --data=*) data=1 ;; esac
      options+=("$1") ;;
  esac
  shift
done
if [ -n "$data" ]; then # what two cores learn from in a few minutes
  results=training.jsonl
  size=(--depth=18 --width=16 --batch=100 --split_size=25 --epochs=2)
  [ -z "$quick" ] || size+=(--epochs=1 --limit=10000)
else
  results=results.jsonl
  size=(--batch=120 --batches=1 --repeat=3 --split_size=20 --schedule=auto)
  [ -z "$quick" ] || size+=(--batch=40 --repeat=1 --split_size=10)
fi
cores=$(($(nproc) / 2)) # of each of the two workers; 0: not pinned

"$root/tools/build.sh" "$preset" resnet50_pipeline baton-run baton-worker
mkdir -p "$root/build/quickstart"
exec "$root/build/$preset/bin/baton-run" --workers=2 \
  --cores_per_worker="$cores" -- "$root/build/$preset/bin/resnet50_pipeline" \
  --json="$root/build/quickstart/$results" \
  --plot="$root/build/quickstart" "${size[@]}" "${options[@]}"
