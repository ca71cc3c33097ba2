#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: examples/quickstart.sh [--quick] [OPTIONS OF resnet50_pipeline...]
# Sets the machine up (apt; root or sudo), builds, and trains ResNet50 in three
# forms over worker processes of this machine: one worker on half of the cores,
# two workers split after layer2, two workers pipelined. Prints a table and
# writes JSON lines and charts to build/quickstart.
#   --quick       one small batch a variant: under a minute
#   --data PATH   train on real images instead, for example CIFAR-10's tar
# All options: build/release/bin/resnet50_pipeline --help
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

size=()
case ${1-} in
  -h | --help) sed -n '5,12s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
  --quick) size=(--batch=40 --batches=1 --repeat=1 --split_size=10); shift ;;
esac
cores=$(($(nproc) / 2)) # of each of the two workers; 0: not pinned

"$root/tools/build.sh" release resnet50_pipeline baton-run baton-worker
mkdir -p "$root/build/quickstart"
exec "$root/build/release/bin/baton-run" --workers=2 \
  --cores_per_worker="$cores" -- "$root/build/release/bin/resnet50_pipeline" \
  --json="$root/build/quickstart/results.jsonl" \
  --plot="$root/build/quickstart" "${size[@]}" "$@"
