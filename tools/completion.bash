# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Completes commands, flags and values in bash, from the programs' --help:
#   source tools/completion.bash
# If installed, bash-completion loads it. After the -- of baton-run it completes the
# trainer's flags.

# Prints the flags of a program, one a line, switches without =.
_baton_flags() {
  "$1" --help 2>/dev/null </dev/null | awk '
    /^  --/ { flag = $1; print flag (/ \[(true|false)\]$/ ? "" : "=") }'
}

_baton() {
  local line=$COMP_LINE words word program first=0 i
  # Readline splits words at = and :, which flags contain.
  read -ra words <<<"${line:0:COMP_POINT}"
  [[ ${line:0:COMP_POINT} == *' ' ]] && words+=('')
  word=${words[-1]} program=${words[0]}
  COMPREPLY=()
  if [ "${program##*/}" = baton-run ]; then
    for ((i = 1; i < ${#words[@]} - 1; ++i)); do
      [ "${words[i]}" = -- ] && first=$((i + 1)) && break
    done
    if ((first == ${#words[@]} - 1)); then
      mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
      return
    fi
    ((first == 0)) || program=${words[first]}
  fi
  if [[ $word == --*=* ]]; then
    local name=${word%%=*} value=${word#*=} values=''
    case $name in
      --dtype) values='fp32 tf32 bf16 fp16' ;;
      --device) values='cpu cuda cuda:0 cuda:1' ;;
      --log) values='debug info warning error' ;;
      --resume) values='no latest whole' ;;
      --schedule) values='gpipe 1f1b interleaved-1f1b zb-h1 zb-v auto' ;;
    esac
    if [ -n "$values" ]; then
      mapfile -t COMPREPLY < <(compgen -W "$values" -- "$value")
    else
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$value")
    fi
    # The text before the last = or : is on the line already.
    [[ $value != *:* ]] || COMPREPLY=("${COMPREPLY[@]#"${value%:*}:"}")
  elif [[ $word == -* ]]; then
    compopt -o nospace 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -W "$(_baton_flags "$program")" -- "$word")
  elif [ "${program##*/}" = batonctl ]; then
    mapfile -t COMPREPLY < <(
      compgen -W 'status rrefs contexts channels trace' -- "$word")
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}

complete -F _baton baton-run baton-worker baton-rendezvous batonctl baton-certs
