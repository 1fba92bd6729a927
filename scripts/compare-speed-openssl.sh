#!/usr/bin/env bash
# Counts the instructions of one handshake in OpenSSL's own programs, `s_time` as the client and `s_server` as the
# server: TLS 1.3, ECDSA P-256, X25519, AES-128-GCM, the certificate verified, one ticket. Their sockets, and what they
# do beside, are counted too. For scripts/compare-speed.sh; it needs valgrind, and a network namespace of its own:
#
#   unshare -rn scripts/compare-speed-openssl.sh OPENSSL
#
# Prints thousands of instructions at the client and at the server.
set -euo pipefail

tool=${1:?usage: unshare -rn scripts/compare-speed-openssl.sh OPENSSL}
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
ip link set lo up

# `s_time` takes its groups from here: otherwise newer releases make a key for ML-KEM too.
cat >config <<'EOF'
openssl_conf = all
[all]
ssl_conf = programs
[programs]
system_default = tls
[tls]
Groups = X25519
[req]
distinguished_name = name
[name]
[root]
basicConstraints = critical, CA:TRUE
[leaf]
subjectAltName = DNS:server.example
EOF
export OPENSSL_CONF=$folder/config
for name in root leaf; do
    "$tool" genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out $name.key
done
"$tool" req -x509 -new -key root.key -subj /CN=root -days 2 -extensions root -out root.pem
"$tool" req -new -key leaf.key -subj /CN=server.example -out leaf.csr
"$tool" x509 -req -in leaf.csr -CA root.pem -CAkey root.key -CAcreateserial -days 2 -extfile config -extensions leaf \
    -out leaf.pem 2>/dev/null

serve=("$tool" s_server -quiet -accept 127.0.0.1:4433 -cert leaf.pem -key leaf.key -num_tickets 1 -tls1_3 -groups X25519)
visit=("$tool" s_time -connect 127.0.0.1:4433 -new -CAfile root.pem -verify 2 -tls1_3 -ciphersuites TLS_AES_128_GCM_SHA256)
counting=(valgrind --tool=callgrind --callgrind-out-file=/dev/null)

await_server() {
    local look
    for look in $(seq 600); do
        [ -z "$(ss -Hltn 'sport = :4433')" ] || return 0
        sleep 0.1
    done
    echo "error: s_server does not listen" >&2
    return 1
}
instructions() { awk '/Collected/ { print $4 }' "$1"; }

"${serve[@]}" >/dev/null 2>&1 &
server=$!
await_server
for seconds in 2 8; do
    timeout 120 "${counting[@]}" "${visit[@]}" -time $seconds >visits 2>counted
    echo "$(awk '/connections in .* real/ { print $1 }' visits) $(instructions counted)"
done >client
kill "$server"
wait "$server" || true

for times in 20 60; do
    timeout 120 "${counting[@]}" "${serve[@]}" -naccept $times >/dev/null 2>counted &
    server=$!
    await_server
    # It ends where nobody listens any more.
    timeout 120 "${visit[@]}" -time 100 >/dev/null 2>&1 || true
    wait "$server"
    server=
    echo "$times $(instructions counted)"
done >server

# What more connections take more.
each() { awk 'NR == 1 { n = $1; of = $2 } NR == 2 { printf "%.0f", ($2 - of) / ($1 - n) / 1000 }' "$1"; }
echo "$(each client) $(each server)"
