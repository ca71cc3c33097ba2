#!/bin/bash
# Copyright 2026 The Baton Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tools/setup.sh [--ci]
# Installs the packages of tools/packages.txt that are missing, with apt, as
# root or by sudo. With --ci also those of .ci/run and the analyze preset.
# Ends at once if none is missing. BATON_SKIP_SETUP=1 says that everything needed
# is installed in another way.
set -euo pipefail
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() { echo "setup: $*" >&2; exit 1; }

group=''
case ${1-} in
  '') ;;
  --ci) group=ci ;;
  -h | --help) sed -n '5,9s/^# \?//p' "${BASH_SOURCE[0]}"; exit ;;
  *) echo "setup: unknown option '$1'; see tools/setup.sh --help" >&2; exit 2 ;;
esac
[ "${BATON_SKIP_SETUP-}" != 1 ] || exit 0

wanted=$(awk -v group="$group" \
  '!/^#/ && NF && (NF == 1 || $2 == group) {print $1}' "$folder/packages.txt")
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  die "this machine has no apt: install the counterparts of" \
    "tools/packages.txt by hand, then set BATON_SKIP_SETUP=1"
fi

# dpkg-query prints "installed NAME" for each package that is installed.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted \
  2>/dev/null | sed -n 's/^installed //p' || true)
missing=$(comm -23 <(sort -u <<<"$wanted") <(sort -u <<<"$installed"))
[ -n "$missing" ] || exit 0

echo "setup: installing" $missing
as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null ||
    die "needs root to install packages and there is no sudo; as root run:" \
      "apt-get install" $missing "(or set BATON_SKIP_SETUP=1 if they are there" \
      "in another form)"
  as_root=(sudo)
  [ -t 0 ] && [ "${CI-}" != true ] || as_root+=(-n)
fi
# With RUNLEVEL=1 packages start no services.
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -q \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null
}
# A broken package source, perhaps of other software, must not prevent installation
# from the others.
apt update || echo "setup: apt-get update failed for a source (see above)" >&2
apt install -y --no-install-recommends $missing ||
  die "apt-get could not install everything (see above); if what is missing is" \
    "installed in another way, set BATON_SKIP_SETUP=1"
# systemd ignores RUNLEVEL. The tests start etcd and Slurm themselves.
for package in etcd-server munge slurmctld slurmd; do
  if grep -qx $package <<<"$missing" && [ -d /run/systemd/system ]; then
    "${as_root[@]}" systemctl disable --now "${package%-server}"
  fi
done
echo "setup: done"
