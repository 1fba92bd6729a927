#!/usr/bin/env bash
# Makes a minimal Debian root in a folder that is not there yet, by debootstrap; further packages may be named.
# usage: scripts/clean-root.sh FOLDER [PACKAGE...]      as root; SUITE=bookworm
set -euo pipefail

usage='usage: scripts/clean-root.sh FOLDER [PACKAGE...]'
folder=${1:?$usage}
shift
[ ! -e "$folder" ] || { echo "error: $folder is there already; name a folder that is not" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "error: debootstrap is not here; apt-get install debootstrap" >&2; exit 3; }
with=$(IFS=,; echo "$*")
debootstrap --variant=minbase ${with:+--include="$with"} "${SUITE:-bookworm}" "$folder" >&2
# What the machine knows of names and of its package mirrors.
cp /etc/resolv.conf /etc/hosts "$folder/etc/"
echo "$folder"
