#!/usr/bin/env bash
# Tries a Debian package in a clean root: installs it with what it depends on, and looks whether the program, its
# man pages, completions and units are there and work; then removes it again.
# usage: scripts/try-package.sh DEB [ROOT]      as root; ROOT is made and taken away if not given
set -euo pipefail

deb=$(realpath "${1:?usage: scripts/try-package.sh DEB [ROOT]}")
here=$(cd "$(dirname "$0")" && pwd)
root=${2:-}
if [ -z "$root" ]; then
    root=$(mktemp -d)/root
    trap 'rm -rf "$(dirname "$root")"' EXIT
fi
[ -d "$root" ] || "$here/clean-root.sh" "$root" >/dev/null
cp "$deb" "$root/tmp/wiretax.deb"
inside() { "$here/in-root.sh" "$root" "$@"; }
user() { inside setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/tmp "$@"; }

failed=0
try() { # NAME TEXT COMMAND...: it ends well, and what it says has the text
    local name=$1 text=$2 began=$SECONDS state=ok said
    shift 2
    said=$(mktemp)
    "$@" >"$said" 2>&1 && grep -qE -- "$text" "$said" || { state=FAILED; failed=$((failed + 1)); }
    printf '%-52s %4d s  %s\n' "$name" "$((SECONDS - began))" "$state"
    [ "$state" = ok ] || sed 's/^/    /' "$said" | tail -n 20
    rm -f "$said"
}
quietly=(env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin)
inside "${quietly[@]}" apt-get update -qq >/dev/null
try 'installs with what it depends on' 'Setting up wiretax' \
    inside "${quietly[@]}" apt-get install -y --no-install-recommends /tmp/wiretax.deb
try 'says its version' '^wiretax [0-9]' user wiretax --version
try 'doctor, as nobody' 'namespaces' user wiretax doctor
try 'a program over an emulated path, as nobody' 'server' \
    user wiretax lab --rtt 20ms -- cat /etc/hosts
try 'measures, as nobody' 'tcp' user wiretax handshake --mode tcp,tcp+tls13 --rtt 5ms --repeat 2 --out /tmp/tried
try 'the static program' '^wiretax [0-9]' user /usr/lib/wiretax/wiretax-static --version
for file in usr/share/man/man1/wiretax.1.gz usr/share/man/man1/wiretax-handshake.1.gz \
    usr/share/bash-completion/completions/wiretax usr/share/zsh/vendor-completions/_wiretax \
    usr/share/fish/vendor_completions.d/wiretax.fish usr/lib/systemd/system/wiretax-gateway-serve.service \
    usr/lib/systemd/system/wiretax-gateway-connect.service usr/share/doc/wiretax/README.md.gz; do
    try "/${file}" . inside sh -c "f=/$file; [ -e \"\$f\" ] || f=\${f%.gz}; [ -s \"\$f\" ] && echo \"\$f\""
done
try 'units start the installed program' '/usr/bin/wiretax' \
    inside grep -h ^ExecStart= /usr/lib/systemd/system/wiretax-gateway-serve.service
try 'is removed without a trace' 'Removing wiretax' inside "${quietly[@]}" apt-get purge -y wiretax
try 'nothing of it is left' '^none$' \
    inside sh -c 'find /usr /etc -name "*wiretax*" | grep . || echo none'
[ "$failed" -eq 0 ] && echo 'the package: passed' || { echo "the package: $failed steps failed"; exit 1; }
