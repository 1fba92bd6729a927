#!/usr/bin/env bash
# Holds what `wiretax stacks` measures of an OpenSSL against that OpenSSL's own benchmark tool, in turns:
# a full TLS 1.3 handshake's CPU time at the server against the sum of its asymmetric operations (one
# ECDSA P-256 signature, one X25519 key and one derivation), which is its floor; and records against
# `speed`'s seal of as many bytes. Prints a table of medians.
#
#   scripts/compare-speed.sh LIBRARY OPENSSL [WIRETAX]
#                       a driver's name, the program `openssl` of the same version, and the program to
#                       measure with; target/release/wiretax if not given
#   ROUNDS=5 SECONDS_EACH=2
#
set -euo pipefail

library=${1:?usage: scripts/compare-speed.sh LIBRARY OPENSSL [WIRETAX]}
openssl=$(command -v "${2:?usage: scripts/compare-speed.sh LIBRARY OPENSSL [WIRETAX]}")
wiretax=$(realpath "${3:-target/release/wiretax}")
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-2}
[ -x "$wiretax" ] || { echo "error: $wiretax is not a program; run make first" >&2; exit 2; }
version=${library#openssl-}
case "$("$openssl" version)" in
    "OpenSSL $version "*) ;;
    *) echo "error: $openssl is not $version: $("$openssl" version)" >&2; exit 2 ;;
esac

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The middle one of a column's numbers.
median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
# A median out of what `wiretax stacks --json` prints.
measured() {
    "$wiretax" -q stacks --libraries "$library" --ms "$((seconds * 1000))" --repeat 1 \
        --out "$folder/results-$1" --json "${@:3}" |
        sed -n "/\"$2\": {/,/}/s/.*\"value\": \([0-9.e+-]*\).*/\1/p" | head -n 1
}

for round in $(seq "$rounds"); do
    "$openssl" speed -mr -seconds "$seconds" ecdsap256 ecdhx25519 2>/dev/null >"$folder/speed"
    # Times of one operation: ECDSA's signature; ECDH's derivation. A key costs what a derivation does
    # or less (a fixed base), so it is counted as one.
    # Releases print operations per second, older ones seconds per operation.
    sign=$(awk -F: '$1 == "+F4" { print ($4 > 1) ? 1e6 / $4 : 1e6 * $4 }' "$folder/speed")
    derive=$(awk -F: '$1 == "+F5" { print ($4 > 1) ? 1e6 / $4 : 1e6 * $4 }' "$folder/speed")
    seal=$("$openssl" speed -mr -seconds "$seconds" -aead -evp aes-128-gcm -bytes 16384 2>/dev/null |
        awk -F: '$1 == "+F" { print $4 * 8 / 1e9 }')
    full=$(measured "full-$round" server_cpu_us --workload full)
    bulk=$(measured "bulk-$round" server_gbit_per_core_s --workload bulk:16384)
    echo "$sign $derive $seal $full $bulk" | tee -a "$folder/rounds" >&2
done
column() { awk -v at="$1" '{ print $at }' "$folder/rounds" | median; }
awk -v sign="$(column 1)" -v derive="$(column 2)" -v seal="$(column 3)" -v full="$(column 4)" \
    -v bulk="$(column 5)" -v name="$library" -v rounds="$rounds" -v seconds="$seconds" 'BEGIN {
    floor = sign + 2 * derive
    printf "%s, TLS 1.3, ECDSA P-256, X25519, AES-128-GCM; medians of %d rounds of %d s\n\n", name, rounds, seconds
    print "| what | speed | wiretax | ratio |"
    print "|---|---:|---:|---:|"
    printf "| full handshake, server: signature + key + derivation | %.1f us | %.1f us | %.2f |\n", floor, full, full / floor
    printf "| records of 16384 bytes, sealed | %.2f Gbit/s | %.2f Gbit/s | %.3f |\n", seal, bulk, bulk / seal
}'
