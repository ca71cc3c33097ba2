#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tools/bundle.sh [--format=zst|xz|gz] BUILD_DIR OUT_DIR [PROGRAM...]
# Collects programs of a build tree (default: all in BUILD_DIR/bin, including
# tests) for a machine that has neither the tree nor its packages:
#   OUT_DIR/baton-bundle/{bin,lib,golden,run.sh,...}   and that folder as
#   OUT_DIR/baton-bundle.tar.FORMAT (zst unless given; at most 60 MB).
# lib holds the shared libraries that the programs need, without those that the
# other machine must have: the C and C++ run time (of this version or newer) and
# the NVIDIA driver, CUDA, cuDNN and NCCL. Run a program there by
# run.sh PROGRAM [ARG...].
set -euo pipefail

readonly limit_mb=60

usage() { sed -n '5,14s/^# \?//p' "${BASH_SOURCE[0]}"; }
die() { echo "bundle: $*" >&2; exit 1; }

format=zst
while [[ ${1-} == -* ]]; do
  case $1 in
    -h | --help) usage; exit ;;
    --format=*) format=${1#*=} ;;
    *) echo "bundle: unknown option '$1'; see tools/bundle.sh --help" >&2
      exit 2 ;;
  esac
  shift
done
case $format in
  zst) compress=(zstd -q -11 --long=27 -T0 -f -o) ;;
  xz) compress=(xz -6 --lzma2=dict=64MiB -T0 -c) ;;
  gz) compress=(gzip -c) ;;
  *) echo "bundle: format '$format' is not zst, xz or gz" >&2; exit 2 ;;
esac
if [ $# -lt 2 ]; then usage >&2; exit 2; fi
for tool in ldd strip tar "${compress[0]}"; do
  command -v "$tool" >/dev/null || die "needs '$tool', which is not here"
done

build=$1 out=$2
shift 2
golden=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/tests/golden
[ -d "$build/bin" ] || die "'$build' is no build tree: it has no folder bin"

programs=()
for program in "$@"; do
  program=$build/bin/${program##*/}
  [ -x "$program" ] || die "no program '$program': build it first"
  programs+=("$program")
done
if [ ${#programs[@]} = 0 ]; then
  mapfile -t programs < <(find "$build/bin" -maxdepth 1 -type f -executable |
    sort)
fi
[ ${#programs[@]} != 0 ] || die "'$build/bin' is empty: build something first"

# The libraries that the other machine must have, by the stem of the file's name.
runtime='c|m|mvec|dl|pthread|rt|resolv|util|anl|nsl|stdc\+\+|gcc_s'
nvidia='cuda|cudart|cublas|cublasLt|cudnn\w*|nccl|nvrtc|nvJitLink|cufft\w*'
nvidia+='|curand|cusolver\w*|cusparse|cupti|nvToolsExt|nvidia-\S+'
readonly brought="^(lib($runtime|$nvidia)\.so|ld-linux|linux-vdso)"

# Prints the path of each library to include, one a line.
libraries() {
  local program name path missing=0
  for program in "${programs[@]}"; do
    while read -r name _ path _; do
      name=${name##*/}
      [[ $name =~ $brought ]] && continue
      if [ "$path" = not ]; then
        echo "bundle: ${program##*/} needs $name, which is not here" >&2
        missing=1
      else
        echo "$path"
      fi
    done < <(ldd "$program" | grep '=>')
  done
  return $missing
}
taken=$(libraries) || die "a library is missing (see above)"
taken=$(sort -u <<<"$taken")

bundle=$out/baton-bundle
archive=$bundle.tar.$format
rm -rf "$bundle" "$archive"
mkdir -p "$bundle/bin" "$bundle/lib" || die "cannot write to '$out'"

for program in "${programs[@]}"; do
  strip -o "$bundle/bin/${program##*/}" "$program"
done
for library in $taken; do
  strip --strip-unneeded -o "$bundle/lib/${library##*/}" "$library"
done
cp -r "$golden" "$bundle/golden"
for program in "${programs[@]}"; do
  ldd "$program" | grep -oE "^\s*lib($nvidia)\.so\S*" || true
  # Opened only when a trace begins, so ldd does not list it.
  grep -aohE '\blibcupti\.so\.[0-9]+' "$program" || true
done | tr -d '\t ' | sort -u >"$bundle/cuda_libraries"

cat >"$bundle/run.sh" <<'END'
#!/bin/bash
# Usage: run.sh PROGRAM [ARG...]
# Runs a program of bin, or any other command, with the libraries of lib and
# those of CUDA that this machine has: in CUDA_HOME, /usr/local/cuda*, the
# linker's cache, or Python's packages.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# = 0 ]; then
  sed -n '2,5s/^# \?//p' "${BASH_SOURCE[0]}"
  printf 'Programs: %s\n' "$(cd "$here/bin" && echo *)"
  exit 2
fi

shopt -s nullglob
# The folders that may contain a library of CUDA; the first that does is used.
folders=()
for root in ${CUDA_HOME:+"$CUDA_HOME"} /usr/local/cuda /usr/local/cuda-*; do
  folders+=("$root"/lib64 "$root"/lib "$root"/targets/*-linux/lib)
done
while read -r library; do
  folders+=("$(dirname "$library")")
done < <({ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null |
  sed -nE 's/.*=> (.*lib(cudart|cublas|cudnn|nccl)\.so.*)/\1/p')
while read -r site; do
  folders+=("$site"/nvidia/*/lib)
done < <(python3 -c 'import sys; print(*filter(None, sys.path), sep="\n")' \
  2>/dev/null)

path=$here/lib
found=
while read -r name; do
  for folder in "${folders[@]}"; do
    [ -e "$folder/$name" ] || continue
    [[ :$found: == *:"$folder":* ]] || found+=${found:+:}$folder
    break
  done
done <"$here/cuda_libraries"
export LD_LIBRARY_PATH=$path${found:+:$found}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export BATON_GOLDEN_DIR=${BATON_GOLDEN_DIR-$here/golden}
program=$1
shift
[ ! -x "$here/bin/$program" ] || program=$here/bin/$program
exec "$program" "$@"
END
chmod +x "$bundle/run.sh"

tar=(tar -C "$out" --sort=name --owner=0 --group=0 -cf - baton-bundle)
if [ "$format" = zst ]; then
  "${tar[@]}" | "${compress[@]}" "$archive"
else
  "${tar[@]}" | "${compress[@]}" >"$archive"
fi

echo "programs: $(cd "$bundle/bin" && echo *)"
echo "libraries: $(cd "$bundle/lib" && echo *)"
size=$(stat -c %s "$archive")
mb=$(awk "BEGIN {printf \"%.1f\", $size / 1e6}")
echo "$archive: $mb MB, $(du -sm "$bundle" | cut -f1) MB unpacked"
((size <= limit_mb * 1000000)) ||
  die "$mb MB is more than $limit_mb MB: name the programs that are needed"
