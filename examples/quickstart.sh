#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: examples/quickstart.sh [--quick] [OPTIONS OF resnet50_pipeline...]
# Sets the machine up (apt; root or sudo), builds, and trains ResNet50 in three
# forms over worker processes of this machine: one worker on half of the cores,
# two workers split after layer2, two workers pipelined. Prints a table and
# writes JSON lines and charts to build/quickstart.
#   --quick         fewer and smaller batches: under a minute
#   --data FOLDER   train on real images instead, for example CIFAR-10's tar
# All options: build/release/bin/resnet50_pipeline --help
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

case ${1-} in
  -h | --help) sed -n '5,13s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
esac

"$root/tools/build.sh" release resnet50_pipeline baton-run baton-worker
mkdir -p "$root/build/quickstart"
exec "$root/build/release/bin/resnet50_pipeline" \
  --json="$root/build/quickstart/results.jsonl" \
  --plot="$root/build/quickstart" "$@"
