#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tests/deploy/slurm_test.sh BIN
# deploy/slurm/baton.sbatch trains over two workers, by TLS, with stand-ins for srun and
# scontrol that start everything here; and gives the trainer's exit code.
set -euo pipefail
bin=$1
recipe=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/deploy/slurm/baton.sbatch
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

mkdir "$folder/bin" "$folder/job"
cat >"$folder/bin/scontrol" <<'END'
#!/bin/bash
[ "$*" = "show hostnames node[1-2]" ] || exit 1
printf 'localhost\nlocalhost\n'
END
# As srun does: --ntasks processes, each with its number; a signal ends them.
cat >"$folder/bin/srun" <<'END'
#!/bin/bash
[ -s "${BATON_TLS_DIR-}/ca.pem" ] || { echo "no keys for srun" >&2; exit 3; }
tasks=$SLURM_NTASKS
while [[ $1 == --* ]]; do
  case $1 in --ntasks=*) tasks=${1#*=} ;; esac
  shift
done
trap 'kill $(jobs -p) 2>/dev/null' TERM
for ((i = 0; i < tasks; ++i)); do SLURM_PROCID=$i "$@" & done
code=0
for pid in $(jobs -p); do wait "$pid" || code=$?; done
exit $code
END
printf '#!/bin/bash\necho localhost\n' >"$folder/bin/hostname"
# Its workers are the trainer's own program, which exports what it needs.
printf '#!/bin/bash\nexec toy_model "$@"\n' >"$folder/bin/baton-worker"
chmod +x "$folder"/bin/*

export PATH=$folder/bin:$bin:$PATH
export SLURM_JOB_ID=7 SLURM_NTASKS=2 SLURM_JOB_NODELIST='node[1-2]'
BATON_PORT=$(python3 -c 'import socket
with socket.socket() as s: s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export BATON_PORT
cd "$folder/job"
bash "$recipe" toy_model --steps=20 >"$folder/log" 2>&1 ||
  fail "training: $(cat "$folder/log")"
grep -q '^step 20: loss' "$folder/log" || fail "it said: $(cat "$folder/log")"
[ -z "$(ls)" ] || fail "left behind: $(ls)"

code=0
bash "$recipe" toy_model --steps=many >"$folder/log" 2>&1 || code=$?
[ $code = 2 ] || fail "exit code $code: $(cat "$folder/log")"
