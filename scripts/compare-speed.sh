#!/usr/bin/env bash
# Holds what `wiretax stacks` measures of a library against that library's own benchmark, in turns, and prints a table
# of medians.
#
# OpenSSL's `speed` has neither handshakes nor TLS records: a full TLS 1.3 handshake's CPU time at the server stands
# beside the sum of its asymmetric operations (one ECDSA P-256 signature, one X25519 key and one derivation), which is
# its floor; records beside `speed`'s seal of as many bytes. Its `s_time` and `s_server` have handshakes, over sockets:
# their instructions are counted (compare-speed-openssl.sh, by valgrind), and stand beside the instructions of ours.
#
# GnuTLS's `gnutls-cli --benchmark-tls-kx` and `-ciphers` have both, client and server in one thread over memory: the
# same handshake (ECDSA P-256, X25519, AES-128-GCM), whose client verifies no certificate as ours does and whose server
# issues no ticket; and the same records, sealed and opened. A small program on GnuTLS alone (compare-speed-gnutls.c)
# does the handshake in its way and in ours; it needs a C compiler, GnuTLS's headers, and valgrind, which counts.
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
# Counts the instructions of a full handshake of ours, into $folder/counts.json; thousands of a side's.
count() {
    "$wiretax" -q stacks --libraries "$library" --workload full --tool callgrind --repeat 1 \
        --out "$folder/results-counted" --json >"$folder/counts.json"
}
thousands() { awk "BEGIN { print $(value counts "${1}_instructions") / 1000 }"; }
# value NAME KEY: a median out of that file.
value() { sed -n "/\"$2\": {/,/}/s/.*\"value\": \([0-9.e+-]*\).*/\1/p" "$folder/$1.json" | head -n 1; }
table() { # TOOL; then rows: WHAT|FORMAT|THEIRS|OURS
    printf '%s, TLS 1.3, ECDSA P-256, X25519, AES-128-GCM; medians of %d rounds of %d s, instructions counted once\n\n' "$library" "$rounds" "$seconds"
    printf '| what | %s | wiretax | ratio |\n|---|---:|---:|---:|\n' "$1"
    awk -F'|' '{ printf "| %s | " $2 " | " $2 " | %.3f |\n", $1, $3, $4, $4 / $3 }'
}

openssl() {
    local round sign derive seal shaken
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
    shaken=$(unshare -rn "$(dirname "$0")/compare-speed-openssl.sh" "$tool")
    count
    table "its tools" <<EOF
full handshake, server, us: signature + key + derivation|%.1f|$(awk "BEGIN { print $(column 1) + 2 * $(column 2) }")|$(column 4)
records of 16384 bytes, sealed, Gbit/s|%.2f|$(column 3)|$(column 5)
full handshake, client, thousands of instructions: s_time|%.0f|${shaken% *}|$(thousands client)
full handshake, server, thousands of instructions: s_server|%.0f|${shaken#* }|$(thousands server)
EOF
}

# Thousands of instructions of one handshake by GnuTLS alone: what forty more of them take.
counted() { # plain|same
    local times all=()
    for times in 20 60; do
        valgrind --tool=callgrind --callgrind-out-file=/dev/null "$folder/alone" "$1" "$times" 2>"$folder/counted" >&2
        all+=("$(awk '/Collected/ { print $4 }' "$folder/counted")")
    done
    awk "BEGIN { print (${all[1]} - ${all[0]}) / 40000 }"
}

gnutls() {
    local round kx ciphers
    cc -O2 -o "$folder/alone" "$(dirname "$0")/compare-speed-gnutls.c" -lgnutls
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
            "$(value "bulk-$round" server_gbit_per_core_s) $(value "bulk-$round" client_gbit_per_core_s)" \
            "$("$folder/alone" plain $((seconds * 1000))) $("$folder/alone" same $((seconds * 1000)))" |
            awk '{ print $1, $2, $3 + $4, 1 / (1 / $5 + 1 / $6), $7, $8 }' | tee -a "$folder/rounds" >&2
    done
    count
    table gnutls-cli <<EOF
full handshake, client and server, us|%.1f|$(column 1)|$(column 3)
the same by GnuTLS alone, us|%.1f|$(column 5)|$(column 3)
with a certificate verified and a ticket, as ours, us|%.1f|$(column 6)|$(column 3)
the same, thousands of instructions|%.0f|$(counted same)|$(awk "BEGIN { print $(thousands client) + $(thousands server) }")
records of 16384 bytes, sealed and opened, Gbit/s|%.2f|$(column 2)|$(column 4)
EOF
}

case "$library" in
    gnutls) gnutls ;;
    openssl-*) openssl ;;
    *) echo "error: $library: expected openssl-VERSION or gnutls" >&2; exit 2 ;;
esac
