#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tests/tools/completion_test.sh BIN
# tools/completion.bash completes what the programs take.
set -uo pipefail
export PATH=$1:$PATH
source "$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/tools/completion.bash"
failed=0

# completes LINE WORDS: the line, up to its end, has these completions.
completes() {
  COMP_LINE=$1 COMP_POINT=${#1}
  _baton
  local got
  got=$(printf '%s\n' "${COMPREPLY[@]}" | sort | xargs)
  [ "$got" = "$2" ] && return
  echo "FAILED: '$1' completes to '$got', not to '$2'" >&2
  failed=1
}

completes 'batonctl st' 'status'
completes 'batonctl ' 'channels contexts rrefs status trace'
completes 'batonctl status --wa' '--watch'
completes 'baton-worker --tls_c' '--tls_ca= --tls_cert='
completes 'baton-run --dtype=b' 'bf16'
completes 'baton-run --device=cuda:' '0 1'
completes 'baton-run --workers=2 -- toy_mod' 'toy_model'
completes 'baton-run --workers=2 -- toy_model --ste' '--steps='
completes 'baton-worker --nonsense' ''
# Every command that batonctl has.
for command in $(batonctl --help | sed -nE 's/^  ([a-z]+)  .*/\1/p'); do
  completes "batonctl $command" "$command"
done
exit $failed
