#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: launched_test.sh BIN
# Three processes as mpiexec or srun start them, told their ranks by the environment
# alone, are a cluster that ends when its trainer does, and train as one of baton-run.
set -euo pipefail
cd "${1:?usage: launched_test.sh BIN}"
unset BATON_NAME BATON_RANK BATON_RENDEZVOUS BATON_WORLD_SIZE BATON_PEERS
unset PMI_RANK PMI_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
unset SLURM_PROCID SLURM_NTASKS
export OMP_NUM_THREADS=1  # baton-run would divide the cores, and sums be rounded otherwise
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Returns what rank 0 does; the others must end well in any case.
launch() {  # RANK_VARIABLE SIZE_VARIABLE PROGRAM FLAGS...
  local rank=$1 size=$2 program=$3 first second code=0
  shift 3
  set -- "$program" --rendezvous="unix:$folder/meet" "$@"
  env "$rank=1" "$size=3" "./$1" "${@:2}" &
  first=$!
  env "$rank=2" "$size=3" "./$1" "${@:2}" &
  second=$!
  env "$rank=0" "$size=3" "./$1" "${@:2}" || code=$?
  wait "$first"
  wait "$second"
  return "$code"
}

launch PMI_RANK PMI_SIZE toy_model > "$folder/printed"
grep -q '^step 20: loss' "$folder/printed"

# What two replicas have learnt: their losses, and the sum of each one's parameters,
# of which the program has seen that they are equal.
learnt() {  # FILE
  grep -o '"\(losses\|parameter_sums\)":\[[^]]*\]' "$1"
}
tiny=(--depth=18 --width=4 --classes=5 --image=32 --batch=4 --steps=3)
./baton-run --workers=2 --worker_program=./resnet50_ddp -- ./resnet50_ddp "${tiny[@]}" \
  --json="$folder/expected"
learnt "$folder/expected" > "$folder/of_baton_run"
grep -q '"losses":\[[0-9.]*\(,[0-9.]*\)\{4\}\]' "$folder/of_baton_run"
grep -q '"parameter_sums":\[\([-0-9.e+]*\),\1\]' "$folder/of_baton_run"
for launcher in PMI_RANK:PMI_SIZE OMPI_COMM_WORLD_RANK:OMPI_COMM_WORLD_SIZE \
    SLURM_PROCID:SLURM_NTASKS; do
  rm -f "$folder/found"
  launch "${launcher%:*}" "${launcher#*:}" resnet50_ddp "${tiny[@]}" \
    --json="$folder/found"
  learnt "$folder/found" | diff "$folder/of_baton_run" -
done

# An error is rank 0's exit code, and the others' end.
code=0
launch PMI_RANK PMI_SIZE resnet50_ddp "${tiny[@]}" --data="$folder/none" \
  2> "$folder/said" || code=$?
[ "$code" -eq 1 ]
grep -q "$folder/none" "$folder/said"
