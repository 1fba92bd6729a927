#!/usr/bin/env bash
# Holds `wiretax observe` against tshark on the same question: which TLS handshakes are in a capture.
# Both read the same synthetic captures from the page cache, in turns: one of full-size packets, one of
# small ones. Prints medians of the time that passed and of CPU time, and the ratio pair by pair.
#
#   scripts/compare-observe.sh [WIRETAX]
#                       the program; target/release/wiretax if not given
#   ROUNDS=5            pairs
#   FULL="2000 900"     connections, and packets of data on each: full-size, about 2.8 GB
#   SMALL="2000 5000"   the same with small packets, about 11 million
#   TSHARK_SHARE=10     tshark reads a capture with 1/10 of the connections: it is slow, and linear
#
set -euo pipefail

wiretax=$(realpath "${1:-target/release/wiretax}")
rounds=${ROUNDS:-5}
read -r full_connections full_packets <<<"${FULL:-2000 900}"
read -r small_connections small_packets <<<"${SMALL:-2000 5000}"
share=${TSHARK_SHARE:-10}
[ -x "$wiretax" ] || { echo "error: $wiretax is not a program; run make first" >&2; exit 2; }
command -v tshark >/dev/null || { echo "error: tshark is not installed" >&2; exit 3; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cargo build --release --locked --quiet -p capture --example traffic
traffic=${CARGO_TARGET_DIR:-target}/release/examples/traffic

median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
packets_in() { capinfos -Mc "$1" 2>/dev/null | awk '/Number of packets/ { print $NF }'; }
# Seconds that a command takes, and its CPU seconds.
timed() {
    TIMEFORMAT='%R %U %S'
    { time "$@" >"$folder/out" 2>/dev/null; } 2>&1 | awk '{ print $1, $2 + $3 }'
}

printf '%-8s %10s %12s %12s %12s %14s\n' packets MB packets/s MB/s 'of CPU' 'times tshark'
for size in full small; do
    connections=${size}_connections packets=${size}_packets
    "$traffic" "$size" "${!connections}" "${!packets}" >"$folder/all.pcap"
    "$traffic" "$size" "$((${!connections} / share))" "${!packets}" >"$folder/part.pcap"
    frames=$(packets_in "$folder/all.pcap")
    part=$(packets_in "$folder/part.pcap")
    bytes=$(stat -c %s "$folder/all.pcap")
    : >"$folder/ours"; : >"$folder/ratio"
    for _ in $(seq "$rounds"); do
        read -r wall cpu <<<"$(timed "$wiretax" -q observe "$folder/all.pcap")"
        read -r _ theirs <<<"$(timed tshark -r "$folder/part.pcap" -Y tls.handshake -T fields \
            -e frame.number -e ip.src -e tls.handshake.type -e tls.handshake.extensions_server_name)"
        echo "$wall $cpu" >>"$folder/ours"
        awk -v t="$theirs" -v p="$part" -v c="$cpu" -v f="$frames" \
            'BEGIN { print (t / p) / (c / f) }' >>"$folder/ratio"
    done
    wall=$(awk '{ print $1 }' "$folder/ours" | median)
    cpu=$(awk '{ print $2 }' "$folder/ours" | median)
    ratio=$(median <"$folder/ratio")
    awk -v s="$size" -v b="$bytes" -v f="$frames" -v w="$wall" -v c="$cpu" -v r="$ratio" 'BEGIN {
        printf "%-8s %10.0f %12.0f %12.0f %10.2f s %14.0f\n", s, b / 1e6, f / w, b / w / 1e6, c, r }'
done
echo "medians of $rounds pairs; \`ROUNDS=$rounds FULL='$full_connections $full_packets' SMALL='$small_connections $small_packets' TSHARK_SHARE=$share scripts/compare-observe.sh\`"
