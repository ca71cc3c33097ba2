#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tests/bench/peers/run_all.sh [--quick] [--device=cpu|cuda]
# Runs every script here once, with tiny sizes by --quick, and says for each OK
# or why not. PYTHON=/usr/bin/python3 chooses the Python. What they print stays
# in the folder that the last line names.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON-python3}
limit=900  # seconds for each

quick=()
device=cuda
for word in "$@"; do
  case $word in
    --quick) quick=(--quick); limit=300 ;;
    --device=cpu | --device=cuda) device=${word#*=} ;;
    -h | --help) sed -n '5,8s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
    *) echo "run_all.sh: unknown option '$word'; see --help" >&2; exit 2 ;;
  esac
done
"$python" "$here/common.py" >/dev/null || exit

logs=$(mktemp -d)
failed=0
# try NAME SCRIPT FLAGS...
try() {
  local name=$1 log begin=$SECONDS code why
  log=$logs/$name.log
  shift
  timeout "$limit" "$python" "$here/$1" --device="$device" \
    "${@:2}" "${quick[@]}" >"$log" 2>&1 </dev/null
  code=$?
  why=$(grep '"failed"' "$log" | head -1)
  [ "$code" != 0 ] && why=$(grep -v '^[[:space:]]*$' "$log" | tail -1)
  [ "$code" = 124 ] && why="not done within $limit s"
  if [ "$code" = 0 ] && [ -z "$why" ]; then
    printf '%-28s OK, %s rows, %s s\n' "$name" "$(grep -c '^{' "$log")" \
      $((SECONDS - begin))
  else
    failed=$((failed + 1))
    printf '%-28s FAILED: %s\n' "$name" "$why"
  fi
}

try resnet50_step resnet50_step.py
try resnet50_split resnet50_split.py
try resnet50_two_processes resnet50_two_processes.py
try ddp resnet50_two_processes.py --schedules=ddp
if [ "$device" = cuda ]; then
  try two_graphs resnet50_two_processes.py --graph --order=channels_last \
    --schedules=gpipe,1f1b
  try ddp_graph resnet50_two_processes.py --graph --order=channels_last \
    --schedules=ddp --compile --dtypes=tf32,bf16
fi
try resnet50_rpc_pipeline resnet50_rpc_pipeline.py
try rpc_calls rpc_calls.py
try all_reduce all_reduce.py --device=cpu
try resnet_ddp_cpu resnet_ddp_cpu.py --device=cpu
try rpc_shapes rpc_shapes.py --device=cpu
try transformer_step transformer_step.py
echo "what they printed is in $logs"
[ "$failed" = 0 ]
