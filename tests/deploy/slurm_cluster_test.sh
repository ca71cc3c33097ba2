#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tests/deploy/slurm_cluster_test.sh BIN
# sbatch takes deploy/slurm/baton.sbatch, and Slurm trains with it over two nodes, which
# are namespaces of this machine with names of their own. Needs root and the packages
# munge, slurmctld, slurmd and slurm-client, whose daemons need not run; exits with 77,
# which skips the test, where they are missing.
set -euo pipefail
bin=$1
recipe=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/deploy/slurm/baton.sbatch
for program in munged slurmctld slurmd sbatch; do
  command -v $program >/dev/null || { echo "no $program here: skipped"; exit 77; }
done
unshare --mount --uts true 2>/dev/null ||
  { echo "no namespaces for us here: skipped"; exit 77; }
folder=$(mktemp -d)
chmod 755 "$folder"
daemons=()
at_end() {
  [ ${#daemons[@]} = 0 ] || kill "${daemons[@]}" 2>/dev/null || true
  wait
  munged --stop --socket="$folder/munge/socket" >/dev/null 2>&1 || true
  rm -rf "$folder"
}
trap at_end EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

mkdir -p "$folder"/{bin,job,munge,state,spool/node1,spool/node2}
printf '127.0.0.1 localhost %s\n127.0.0.2 node1\n127.0.0.3 node2\n' "$(hostname)" \
  >"$folder/hosts"
read -r control node1 node2 meet < <(python3 -c 'import socket
ends = [socket.socket() for _ in range(4)]
for end in ends: end.bind(("", 0))
print(*[end.getsockname()[1] for end in ends])')
export SLURM_CONF=$folder/slurm.conf BATON_PORT=$meet
cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$(hostname -s)
SlurmUser=root
SlurmctldPort=$control
AuthInfo=socket=$folder/munge/socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
NodeName=node1 Port=$node1 State=UNKNOWN
NodeName=node2 Port=$node2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
head -c 1024 /dev/urandom >"$folder/munge/key"
chmod 400 "$folder/munge/key"
munged --force --socket="$folder/munge/socket" --key-file="$folder/munge/key" \
  --pid-file="$folder/munge/pid" --seed-file="$folder/munge/seed" \
  --log-file="$folder/munge/log"

# on NAME COMMAND...: becomes the command, on a host of that name that knows the nodes.
on() {
  local name=$1
  shift
  exec unshare --mount --uts bash -c \
    'mount --bind "$0" /etc/hosts && hostname "$1" && shift && exec "$@"' \
    "$folder/hosts" "$name" "$@"
}
(on "$(hostname)" slurmctld -D -c >"$folder/slurmctld.log" 2>&1) & daemons+=($!)
for node in node1 node2; do
  (on $node slurmd -D -c -N $node >"$folder/$node.log" 2>&1) & daemons+=($!)
done

# The workers are the trainer's own program, which exports what it needs.
printf '#!/bin/bash\nexec toy_model "$@"\n' >"$folder/bin/baton-worker"
chmod +x "$folder/bin/baton-worker"
export PATH=$folder/bin:$bin:$PATH
cd "$folder/job"
train() { (on "$(hostname)" timeout 90 sbatch --wait --output=log "$recipe" toy_model "$@"); }
train --steps=20 || fail "training: $(cat log "$folder"/*.log)"
grep -q '^step 20: loss' log || fail "it said: $(cat log)"
[ "$(ls)" = log ] || fail "left behind: $(ls)"

code=0
train --steps=many || code=$?
[ $code = 2 ] || fail "exit code $code: $(cat log)"
