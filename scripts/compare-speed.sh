#!/usr/bin/env bash
# Holds what `wiretax stacks` measures of a library against that library's own benchmark, in turns, and prints a table
# of medians.
#
# OpenSSL's `speed` has neither handshakes nor TLS records: a full TLS 1.3 handshake's CPU time at the server stands
# beside the sum of its asymmetric operations (one ECDSA P-256 signature, one X25519 key and one derivation), which is
# its floor; records beside `speed`'s seal of as many bytes.
#
# GnuTLS's `gnutls-cli --benchmark-tls-kx` and `-ciphers` have both, client and server in one thread over memory: the
# same handshake (ECDSA P-256, X25519, AES-128-GCM), whose client verifies no certificate as ours does; and the same
# records, sealed and opened.
#
#   scripts/compare-speed.sh LIBRARY TOOL [WIRETAX]
#                       a driver's name (openssl-VERSION or gnutls), the program `openssl` or `gnutls-cli` of the
#                       same version, and the program to measure with; target/release/wiretax if not given
#   ROUNDS=5 SECONDS_EACH=2
#
set -euo pipefail

usage='usage: scripts/compare-speed.sh LIBRARY TOOL [WIRETAX]'
library=${1:?$usage}
tool=$(command -v "${2:?$usage}") || { echo "error: there is no program $2" >&2; exit 2; }
wiretax=$(realpath "${3:-target/release/wiretax}")
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-2}
[ -x "$wiretax" ] || { echo "error: $wiretax is not a program; run make first" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The middle one of a column's numbers.
median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
column() { awk -v at="$1" '{ print $at }' "$folder/rounds" | median; }
# measure NAME WORKLOAD: into $folder/NAME.json.
measure() {
    "$wiretax" -q stacks --libraries "$library" --workload "$2" --ms "$((seconds * 1000))" --repeat 1 \
        --out "$folder/results-$1" --json >"$folder/$1.json"
}
# value NAME KEY: a median out of that file.
value() { sed -n "/\"$2\": {/,/}/s/.*\"value\": \([0-9.e+-]*\).*/\1/p" "$folder/$1.json" | head -n 1; }
table() { # TOOL; then rows: WHAT|FORMAT|THEIRS|OURS
    printf '%s, TLS 1.3, ECDSA P-256, X25519, AES-128-GCM; medians of %d rounds of %d s\n\n' "$library" "$rounds" "$seconds"
    printf '| what | %s | wiretax | ratio |\n|---|---:|---:|---:|\n' "$1"
    awk -F'|' '{ printf "| %s | " $2 " | " $2 " | %.3f |\n", $1, $3, $4, $4 / $3 }'
}

openssl() {
    local round sign derive seal
    case "$("$tool" version)" in
        "OpenSSL ${library#openssl-} "*) ;;
        *) echo "error: $tool is not ${library#openssl-}: $("$tool" version)" >&2; exit 2 ;;
    esac
    for round in $(seq "$rounds"); do
        "$tool" speed -mr -seconds "$seconds" ecdsap256 ecdhx25519 2>/dev/null >"$folder/speed"
        # Times of one operation: ECDSA's signature; ECDH's derivation. A key costs what a derivation does
        # or less (a fixed base), so it is counted as one.
        # Releases print operations per second, older ones seconds per operation.
        sign=$(awk -F: '$1 == "+F4" { print ($4 > 1) ? 1e6 / $4 : 1e6 * $4 }' "$folder/speed")
        derive=$(awk -F: '$1 == "+F5" { print ($4 > 1) ? 1e6 / $4 : 1e6 * $4 }' "$folder/speed")
        seal=$("$tool" speed -mr -seconds "$seconds" -aead -evp aes-128-gcm -bytes 16384 2>/dev/null |
            awk -F: '$1 == "+F" { print $4 * 8 / 1e9 }')
        measure "full-$round" full
        measure "bulk-$round" bulk:16384
        echo "$sign $derive $seal $(value "full-$round" server_cpu_us) $(value "bulk-$round" server_gbit_per_core_s)" |
            tee -a "$folder/rounds" >&2
    done
    table speed <<EOF
full handshake, server, us: signature + key + derivation|%.1f|$(awk "BEGIN { print $(column 1) + 2 * $(column 2) }")|$(column 4)
records of 16384 bytes, sealed, Gbit/s|%.2f|$(column 3)|$(column 5)
EOF
}

gnutls() {
    local round kx ciphers
    for round in $(seq "$rounds"); do
        "$tool" --benchmark-tls-kx >"$folder/kx"
        kx=$(awk 'index($0, "(TLS1.3)-(ECDHE-X25519)-(ECDSA-SECP256R1-SHA256)-(AES-128-GCM)") { found = 1 }
            found && /transactions/ { print 1e6 / $2; exit }' "$folder/kx")
        "$tool" --benchmark-tls-ciphers >"$folder/ciphers"
        ciphers=$(awk '/payload: 16384/ { large = 1 }
            large && /AES-128-GCM - TLS1.3/ { print $(NF - 1) * ($NF ~ /^GB/ ? 8 : 0.008); exit }' "$folder/ciphers")
        measure "full-$round" full
        measure "bulk-$round" bulk:16384
        echo "$kx $ciphers $(value "full-$round" server_cpu_us) $(value "full-$round" client_cpu_us)" \
            "$(value "bulk-$round" server_gbit_per_core_s) $(value "bulk-$round" client_gbit_per_core_s)" |
            awk '{ print $1, $2, $3 + $4, 1 / (1 / $5 + 1 / $6) }' | tee -a "$folder/rounds" >&2
    done
    table gnutls-cli <<EOF
full handshake, client and server, us|%.1f|$(column 1)|$(column 3)
records of 16384 bytes, sealed and opened, Gbit/s|%.2f|$(column 2)|$(column 4)
EOF
}

case "$library" in
    gnutls) gnutls ;;
    openssl-*) openssl ;;
    *) echo "error: $library: expected openssl-VERSION or gnutls" >&2; exit 2 ;;
esac
