#!/usr/bin/env bash
# Tries a static program where there is nothing else: in an empty root it probes a server by address and by name
# (of /etc/hosts), says why a name cannot be found, and reads a capture.
# usage: scripts/try-static.sh PROGRAM      needs openssl (as a server) and util-linux
set -euo pipefail

program=$(realpath "${1:?usage: scripts/try-static.sh PROGRAM}")
here=$(cd "$(dirname "$0")/.." && pwd)
root=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$root"' EXIT

cp "$program" "$root/wiretax"
mkdir "$root/etc" "$root/tmp" "$root/dev"
: >"$root/dev/urandom"
: >"$root/dev/random"
echo '127.0.0.1 server.test' >"$root/etc/hosts"
cp "$here/crates/proto/tracker/tests/data/tls1.2.pcap" "$root/trace.pcap"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server.test -days 2 \
    -keyout "$root/key.pem" -out "$root/cert.pem" 2>/dev/null
port=$((20000 + $$ % 20000))
openssl s_server -quiet -www -accept "127.0.0.1:$port" -key "$root/key.pem" -cert "$root/cert.pem" \
    >/dev/null 2>&1 &
server=$!
for _ in $(seq 50); do
    ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    sleep 0.1
done

# Of devices it has the two that every machine has.
alone() {
    # shellcheck disable=SC2016
    unshare --user --map-root-user --mount sh -c \
        'mount --bind /dev/urandom "$0/dev/urandom" && mount --bind /dev/random "$0/dev/random" && exec chroot "$0" /wiretax "$@"' "$root" "$@"
}
failed=0
try() { # NAME TEXT COMMAND...: what it says has the text
    local name=$1 text=$2 state=ok
    shift 2
    "$@" >"$root/tmp/said" 2>&1 || true
    grep -qiE -- "$text" "$root/tmp/said" || { state=FAILED; failed=$((failed + 1)); }
    printf '%-52s %s\n' "$name" "$state"
    [ "$state" = ok ] || sed 's/^/    /' "$root/tmp/said" | head -n 20
}
try 'it starts where there is nothing' '^wiretax [0-9]' alone --version
try 'probe of an address' 'TLS 1\.3 +yes' alone probe "127.0.0.1:$port" --insecure --repeat 2 --timeout 1s
try 'probe of a name' 'TLS 1\.3 +yes' alone probe "server.test:$port" --insecure --repeat 2 --timeout 1s
try 'a name that cannot be found is said' 'no-such-name\.invalid' alone probe no-such-name.invalid
try 'observe reads a capture' 'handshake' alone observe /trace.pcap
[ "$failed" -eq 0 ] || exit 1
