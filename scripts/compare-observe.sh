#!/usr/bin/env bash
# Holds `wiretax observe` against tshark on the same question: which TLS handshakes are in a capture.
# Both read the same packets of the same synthetic capture from the page cache, in turns, and print a
# line for each handshake; the lines must say the same. What each takes for a capture without packets is
# its start-up: it stands apart, and is taken off before packets are compared. Prints medians; `times
# tshark` is 0 where a capture is too short to be told from start-up.
#
#   scripts/compare-observe.sh [WIRETAX]
#                       the program; target/release/wiretax if not given
#   ROUNDS=5            rounds
#   FULL="200 900"      connections, and packets of data on each: full-size, about 280 MB
#   SMALL="200 5000"    the same with small packets, about 1.1 million
#   RATE=10             wiretax alone reads as many times these connections besides: its rate at length;
#                       0 for none
#   THREADS="1 2"       on how many threads it reads these, in turns; beside tshark it has one
#   TRAFFIC=PROGRAM     the generator of captures (crates/capture/examples/traffic.rs); built if not given
#
# Exit codes: 0 done, 1 the two do not find the same handshakes, 2 wrongly called, 3 this machine lacks
# something.
set -euo pipefail
# Decimal points in all figures.
export LC_ALL=C

wiretax=$(realpath -m "${1:-target/release/wiretax}")
rounds=${ROUNDS:-5}
rate=${RATE:-10}
read -r -a threads <<<"${THREADS:-1 2}"
read -r full_connections full_packets <<<"${FULL:-200 900}"
read -r small_connections small_packets <<<"${SMALL:-200 5000}"
[ -x "$wiretax" ] || { echo "error: $wiretax is not a program; run 'make build' first" >&2; exit 2; }
for program in tshark capinfos; do
    command -v "$program" >/dev/null ||
        { echo "error: $program is not installed; in Debian: apt-get install tshark" >&2; exit 3; }
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ -z "${TRAFFIC:-}" ]; then
    cargo build --release --locked --quiet -p capture --example traffic
    TRAFFIC=${CARGO_TARGET_DIR:-target}/release/examples/traffic
fi

median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
packets_in() { capinfos -Mc "$1" 2>/dev/null | awk '/Number of packets/ { print $NF }'; }
# Seconds that a command takes, and its CPU seconds; what it prints goes into a file.
timed() {
    local out=$1 TIMEFORMAT='%R %U %S'
    shift
    { time "$@" >"$out" 2>/dev/null; } 2>&1 | awk '{ print $1, $2 + $3 }'
}
ours() { timed "$folder/ours" "$wiretax" -q observe --threads 1 --json "$1"; }
theirs() {
    timed "$folder/theirs" tshark -n -r "$1" -Y tls.handshake -T fields -e ip.src -e tcp.srcport \
        -e ip.dst -e tcp.dstport -e tls.handshake.type -e tls.handshake.version \
        -e tls.handshake.extensions_server_name
}

# One line for each ClientHello (client, name) and ServerHello (client, version), sorted.
said_by_ours() {
    sed -nE 's/^\{"kind":"connection",.*"client":"([^"]*)","client_port":([0-9]+),.*"sni":("([^"]*)"|null),.*"version_number":([0-9]+|null),.*/\1 \2 \4 \5/p' \
        "$folder/ours" | awk -F' ' '{ print "hello", $1, $2, (NF == 4) ? $3 : ""; print "answer", $1, $2, $NF }' | sort
}
said_by_theirs() {
    awk -F'\t' '
        function number(hex,   n, at) {
            n = 0; sub(/,.*/, "", hex); sub(/^0x/, "", hex)
            for (at = 1; at <= length(hex); at++) n = 16 * n + index("0123456789abcdef", substr(hex, at, 1)) - 1
            return n
        }
        $5 ~ /^1(,|$)/ { print "hello", $1, $2, $7 }
        $5 ~ /^2(,|$)/ { print "answer", $3, $4, number($6) }' "$folder/theirs" | sort
}

printf '%-8s %10s %8s %11s %11s %12s %12s %14s\n' \
    packets number hellos 'start' 'its start' 'CPU' 'its CPU' 'times tshark'
for size in full small; do
    connections=${size}_connections packets=${size}_packets
    "$TRAFFIC" "$size" "${!connections}" "${!packets}" >"$folder/all.pcap"
    # A capture's own header, and no packet.
    head -c 24 "$folder/all.pcap" >"$folder/none.pcap"
    frames=$(packets_in "$folder/all.pcap")
    for list in start_ours start_theirs cpu_ours cpu_theirs ratio; do : >"$folder/$list"; done
    for _ in $(seq "$rounds"); do
        read -r _ start_ours <<<"$(ours "$folder/none.pcap")"
        read -r _ start_theirs <<<"$(theirs "$folder/none.pcap")"
        read -r _ cpu_ours <<<"$(ours "$folder/all.pcap")"
        read -r _ cpu_theirs <<<"$(theirs "$folder/all.pcap")"
        for list in start_ours start_theirs cpu_ours cpu_theirs; do echo "${!list}" >>"$folder/$list"; done
        awk -v a="$cpu_ours" -v b="$start_ours" -v c="$cpu_theirs" -v d="$start_theirs" \
            'BEGIN { print (a > b && c > d) ? (c - d) / (a - b) : 0 }' >>"$folder/ratio"
        said_by_ours >"$folder/said_by_ours"
        said_by_theirs >"$folder/said_by_theirs"
        if ! cmp -s "$folder/said_by_ours" "$folder/said_by_theirs"; then
            echo "error: the two do not find the same handshakes (< wiretax, > tshark):" >&2
            diff "$folder/said_by_ours" "$folder/said_by_theirs" | head -n 10 >&2
            exit 1
        fi
    done
    [ -s "$folder/said_by_ours" ] || { echo "error: neither finds a handshake" >&2; exit 1; }
    hellos=$(wc -l <"$folder/said_by_ours")
    printf '%-8s %10d %8d %9.3f s %9.3f s %10.3f s %10.3f s %14.0f\n' "$size" "$frames" "$hellos" \
        "$(median <"$folder/start_ours")" "$(median <"$folder/start_theirs")" \
        "$(median <"$folder/cpu_ours")" "$(median <"$folder/cpu_theirs")" "$(median <"$folder/ratio")"
done
echo "both read the same packets and found the same hellos; CPU seconds with the start-up, 'times tshark' without it"

if [ "$rate" -gt 0 ]; then
    printf '\n%-8s %8s %10s %12s %12s %12s %22s\n' packets threads MB packets/s MB/s CPU "times ${threads[0]} thread's"
    for size in full small; do
        connections=${size}_connections packets=${size}_packets
        "$TRAFFIC" "$size" "$((${!connections} * rate))" "${!packets}" >"$folder/all.pcap"
        frames=$(packets_in "$folder/all.pcap")
        bytes=$(stat -c %s "$folder/all.pcap")
        rm -f "$folder"/long.*
        for _ in $(seq "$rounds"); do
            for count in "${threads[@]}"; do
                timed "$folder/ours" "$wiretax" -q observe --threads "$count" "$folder/all.pcap" >>"$folder/long.$count"
            done
        done
        for count in "${threads[@]}"; do
            wall=$(awk '{ print $1 }' "$folder/long.$count" | median)
            cpu=$(awk '{ print $2 }' "$folder/long.$count" | median)
            # Round by round: what else the machine does changes slowly.
            times=$(paste -d ' ' "$folder/long.${threads[0]}" "$folder/long.$count" | awk '{ print $1 / $3 }' | median)
            awk -v s="$size" -v n="$count" -v b="$bytes" -v f="$frames" -v w="$wall" -v c="$cpu" -v t="$times" 'BEGIN {
                printf "%-8s %8d %10.0f %12.0f %12.0f %10.2f s %22.2f\n", s, n, b / 1e6, f / w, b / w / 1e6, c, t }'
        done
    done
    echo "wiretax alone, its statistics in place of a line a connection; the whole program's time"
fi
echo "medians of $rounds rounds; \`ROUNDS=$rounds FULL='$full_connections $full_packets' SMALL='$small_connections $small_packets' RATE=$rate scripts/compare-observe.sh\`"
