#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tests/tools/bundle_test.sh BUILD_DIR
# What tools/bundle.sh gathers runs elsewhere; what it cannot gather, it names.
set -euo pipefail
build=$1
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/tools/bundle.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
# says SENTENCE COMMAND...: the command fails and says so.
says() {
  local sentence=$1 output
  shift
  if output=$("$@" 2>&1); then fail "'$*' did not fail"; fi
  [[ $output == *"$sentence"* ]] || fail "'$*' said: $output"
}

"$bundle" --format=gz "$build" "$folder" baton-run >"$folder/log" ||
  fail "bundling: $(cat "$folder/log")"
mkdir "$folder/elsewhere"
tar -C "$folder/elsewhere" -xzf "$folder/baton-bundle.tar.gz"
rm -rf "$folder/baton-bundle"
here=$folder/elsewhere/baton-bundle
env -i PATH=/usr/bin:/bin "$here/run.sh" baton-run --help >"$folder/help" 2>&1 ||
  true  # absl's --help exits with 1
grep -q 'baton-run' "$folder/help" || fail "it said: $(cat "$folder/help")"

# Every library but the C and C++ run time comes from the bundle.
env -i PATH=/usr/bin:/bin "$here/run.sh" ldd "$here/bin/baton-run" \
  >"$folder/ldd"
if grep '=>' "$folder/ldd" | grep -vF "$here/lib/" |
  grep -vE '\blib(c|m|mvec|dl|pthread|rt|resolv|util|stdc\+\+|gcc_s|cu.*|nv.*)\.so'
then
  fail "these were found outside the bundle"
fi
cmp -s "$here/golden/optimizers.json" \
  "${bundle%/tools/*}/tests/golden/optimizers.json" || fail "no golden data"

says "no program" "$bundle" "$build" "$folder" nothing_like_it
says "is no build tree" "$bundle" "$folder/elsewhere" "$folder"
says "is not zst, xz or gz" "$bundle" --format=rar "$build" "$folder"
says "unknown option" "$bundle" --wrong "$build" "$folder"
says "Usage" "$bundle" "$build"
