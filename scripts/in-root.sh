#!/usr/bin/env bash
# Runs a command in another root folder as if the machine had nothing else: its own mounts and processes, which
# are gone with it. User namespaces work there (they do not below chroot(2)).
# usage: [OFFLINE=1] scripts/in-root.sh ROOT COMMAND...      as root; OFFLINE: with no network but its own loopback
set -euo pipefail

root=$(realpath "${1:?usage: scripts/in-root.sh ROOT COMMAND...}")
shift
own=(--mount --pid --fork --kill-child)
[ -z "${OFFLINE:-}" ] || own+=(--net)
# shellcheck disable=SC2016 # these are for the shells inside
exec unshare "${own[@]}" bash -euc '
    root=$1
    shift
    [ -z "${OFFLINE:-}" ] || ip link set lo up
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/.outside"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    cd "$root"
    pivot_root . .outside
    exec chroot . /bin/sh -euc "umount -l /.outside; cd /; exec \"\$@\"" sh "$@"
' bash "$root" "$@"
