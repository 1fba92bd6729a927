#!/usr/bin/env bash
# Makes a minimal Debian root in a folder that is not there yet, by debootstrap; further packages may be named, which
# are installed in it by apt.
# usage: scripts/clean-root.sh FOLDER [PACKAGE...]      as root; SUITE=bookworm
set -euo pipefail

folder=${1:?usage: scripts/clean-root.sh FOLDER [PACKAGE...]}
shift
here=$(cd "$(dirname "$0")" && pwd)
[ ! -e "$folder" ] || { echo "error: $folder is there already; name a folder that is not" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "error: debootstrap is not here; apt-get install debootstrap" >&2; exit 3; }
# Nothing without the archive's signature (package debian-archive-keyring).
debootstrap --force-check-gpg --variant=minbase "${SUITE:-bookworm}" "$folder" >&2
# What the machine knows of names and of its package mirrors.
cp /etc/resolv.conf /etc/hosts "$folder/etc/"
if [ $# -gt 0 ]; then
    # Not by debootstrap: it does not choose among packages that provide the same. No service is started.
    printf '#!/bin/sh\nexit 101\n' >"$folder/usr/sbin/policy-rc.d"
    chmod 755 "$folder/usr/sbin/policy-rc.d"
    inside=("$here/in-root.sh" "$folder" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin)
    "${inside[@]}" apt-get update -qq >&2
    "${inside[@]}" apt-get install -y -qq --no-install-recommends "$@" >&2
    rm "$folder/usr/sbin/policy-rc.d"
fi
echo "$folder"
