#!/usr/bin/env bash
# Holds `wiretax lab` against mahimahi's mm-delay and mm-link, and against rattan where they are installed, in
# turns: how exact a delay is (round trips of UDP), and what one TCP flow gets of a rate. Prints a table
# of medians.
#
#   scripts/compare-lab.sh [WIRETAX]                     target/release/wiretax if not given
#   ROOT=FOLDER scripts/compare-lab.sh WIRETAX [RATTAN]  in another root; both programs static, as root
#   ROUNDS=5 DELAY_MS=20 RATE_MBIT=12 SECONDS_EACH=5
#
# Debian 11 is the last release with mahimahi, so for all three:
#
#   SUITE=bullseye scripts/clean-root.sh ROOT mahimahi iproute2 python3 util-linux
#   RUSTFLAGS='-C target-feature=+crt-static' cargo install --locked rattan@0.1.1 --target x86_64-unknown-linux-gnu
#   ROOT=ROOT scripts/compare-lab.sh target/static/wiretax ~/.cargo/bin/rattan
#
# Needs python3. mahimahi wants an ordinary user who may use its setuid programs, and net.ipv4.ip_forward=1: as root
# this has namespaces of its own, and sets it there. rattan wants root.
#
# What is the same for all: server and client, the delay each way, the trace with one packet of 1500 bytes at each
# opportunity, a queue of 1000 packets, kernel TCP with its settings, turns on one machine. What is not: delay and rate
# are two processes in mahimahi, whose packets pass TUN devices and the kernel's NAT; wiretax and rattan take
# Ethernet frames from one node to the other in one process.
set -euo pipefail

wiretax=$(realpath "${1:-target/release/wiretax}")
rounds=${ROUNDS:-5}
delay=${DELAY_MS:-20}
rate=${RATE_MBIT:-12}
seconds=${SECONDS_EACH:-5}
[ -x "$wiretax" ] || { echo "error: $wiretax is not a program; run make first" >&2; exit 2; }
if [ -n "${ROOT:-}" ]; then
    install -m 755 "$wiretax" "$ROOT/usr/local/bin/wiretax"
    install -m 755 "$0" "$ROOT/usr/local/bin/compare-lab"
    [ -z "${2:-}" ] || install -m 755 "$2" "$ROOT/usr/local/bin/rattan"
    exec env -u ROOT PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$(dirname "$0")/in-root.sh" "$ROOT" \
        compare-lab /usr/local/bin/wiretax
fi
if [ "$(id -u)" -eq 0 ] && [ -z "${INSIDE:-}" ]; then
    INSIDE=yes exec unshare --net --mount "$0" "$@"
fi
command -v python3 >/dev/null || { echo "error: python3 is not here; apt-get install python3" >&2; exit 3; }
folder=$(mktemp -d)
chmod 755 "$folder"
servers=()
trap 'kill "${servers[@]}" 2>/dev/null || true; umount "$folder/own" 2>/dev/null || true; rm -rf "$folder"' EXIT

as_user=() forward=
if [ "$(id -u)" -eq 0 ]; then
    as_user=(setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/tmp)
    ip link set lo up
    echo 1 >/proc/sys/net/ipv4/ip_forward
    # A namespace made by mm-delay has the setting of the machine's first one, and mm-link in it wants 1, as a user:
    # by a program that is setuid, in a file system that only this mount namespace has.
    mkdir "$folder/own"
    mount -t tmpfs own "$folder/own"
    install -m 4755 "$(command -v tee)" "$folder/own/tee"
    forward="echo 1 | $folder/own/tee /proc/sys/net/ipv4/ip_forward >/dev/null;"
fi

# A UDP echo and a TCP source at one end; 200 round trips and one download at the other.
cat >"$folder/server.py" <<'PY'
import socket, threading
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("0.0.0.0", 7007))
def echo():
    while True:
        data, peer = udp.recvfrom(2048)
        udp.sendto(data, peer)
threading.Thread(target=echo, daemon=True).start()
tcp = socket.socket()
tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
tcp.bind(("0.0.0.0", 7008))
tcp.listen()
def pour(one):
    try:
        while True:
            one.sendall(bytes(1 << 16))
    except OSError:
        pass
while True:
    threading.Thread(target=pour, args=(tcp.accept()[0],), daemon=True).start()
PY
cat >"$folder/client.py" <<'PY'
import os, socket, sys, time
what, host, amount = sys.argv[1], sys.argv[2], float(sys.argv[3])
if what == "delay":
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.settimeout(2)
    trips = []
    for _ in range(200):
        began = time.perf_counter()
        udp.sendto(b"x" * 64, (host, 7007))
        try:
            udp.recv(2048)
        except socket.timeout:
            continue
        trips.append((time.perf_counter() - began) * 1e6 - amount * 1e3)
        time.sleep(0.005)
    trips.sort()
    print(f"{trips[len(trips) // 2]:.0f} {trips[int(len(trips) * 0.99)]:.0f}")
else:
    tcp = socket.create_connection((host, 7008))
    got, began = 0, time.perf_counter()
    # The first second is slow start's.
    while time.perf_counter() - began < amount + 1:
        data = tcp.recv(1 << 20)
        if time.perf_counter() - began > 1:
            got += len(data)
    print(f"{got * 8 / 1e6 / amount:.3f}")
PY

# mahimahi counts opportunities of 1500 bytes: rate Mbit/s are rate / 12 of them each millisecond.
awk -v rate="$rate" 'BEGIN { n = 0; for (ms = 1; ms <= 1000; ms++) { while ((n + 1) * 12 <= rate * ms) { n++; print ms } } }' \
    >"$folder/trace"
# Outside of mahimahi's shell the servers listen on the machine itself.
python3 "$folder/server.py" &
servers+=($!)

by_wiretax() { # WHAT AMOUNT OPTIONS...
    local what=$1 amount=$2
    shift 2
    "$wiretax" -q lab "$@" --serve "exec python3 $folder/server.py" -- \
        python3 "$folder/client.py" "$what" server "$amount"
}
by_mahimahi() { # WHAT AMOUNT SHELL...
    local what=$1 amount=$2
    shift 2
    # MAHIMAHI_BASE is the machine as the shell sees it.
    "${as_user[@]}" "$@" sh -c "python3 $folder/client.py $what \$MAHIMAHI_BASE $amount"
}
by_rattan() { # WHAT AMOUNT OPTIONS...
    local what=$1 amount=$2
    shift 2
    rattan link "$@" -- sh -c "python3 $folder/client.py $what \$RATTAN_BASE $amount" 2>/dev/null | grep -E '^[0-9.]+( -?[0-9]+)?$'
}
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2; else print "-" }'; }

has_mahimahi=$(command -v mm-delay || true)
[ -n "$has_mahimahi" ] || echo "note: mahimahi is not installed (Debian 11 has it; this script says how to get a root with it): left out" >&2
has_rattan=$(command -v rattan || true)
[ -n "$has_rattan" ] || echo "note: rattan is not installed (cargo install --locked rattan@0.1.1): left out" >&2
queue=1000
mm_queue=(--uplink-queue=droptail --downlink-queue=droptail
    "--uplink-queue-args=packets=$queue" "--downlink-queue-args=packets=$queue")
rattan_queue=(--uplink-queue droptail --uplink-queue-args "{\"packet_limit\":$queue}"
    --downlink-queue droptail --downlink-queue-args "{\"packet_limit\":$queue}")
for round in $(seq "$rounds"); do
    echo "round $round of $rounds" >&2
    by_wiretax delay $((2 * delay)) --rtt $((2 * delay))ms >>"$folder/wiretax.delay"
    by_wiretax rate "$seconds" --rtt $((2 * delay))ms --queue "$queue" --trace-up "$folder/trace" \
        --trace-down "$folder/trace" >>"$folder/wiretax.rate"
    if [ -n "$has_mahimahi" ]; then
        by_mahimahi delay $((2 * delay)) mm-delay "$delay" >>"$folder/mahimahi.delay"
        by_mahimahi rate "$seconds" mm-delay "$delay" sh -c "$forward"' exec mm-link "$@"' sh "${mm_queue[@]}" \
            "$folder/trace" "$folder/trace" -- >>"$folder/mahimahi.rate"
    fi
    if [ -n "$has_rattan" ]; then
        ways=(--uplink-delay "${delay}ms" --downlink-delay "${delay}ms")
        by_rattan delay $((2 * delay)) "${ways[@]}" >>"$folder/rattan.delay"
        by_rattan rate "$seconds" "${ways[@]}" "${rattan_queue[@]}" --uplink-trace "$folder/trace" \
            --downlink-trace "$folder/trace" >>"$folder/rattan.rate"
    fi
done

printf '%s ms each way; %s Mbit/s of 1500-byte packets each way; medians of %s rounds\n' "$delay" "$rate" "$rounds"
printf '%s' "$("$wiretax" --version)"
[ -z "$has_mahimahi" ] || printf ', mahimahi %s' "$(dpkg-query -W -f '${Version}' mahimahi 2>/dev/null || echo '?')"
[ -z "$has_rattan" ] || printf ', %s' "$(rattan --version | head -n 1)"
printf '\n\n'
echo "| emulator | round trip, median error | 99th percentile | one TCP flow |"
echo "|---|---:|---:|---:|"
for who in wiretax mahimahi rattan; do
    [ -s "$folder/$who.delay" ] || continue
    printf '| %s | %s us | %s us | %s Mbit/s |\n' "$who" "$(awk '{ print $1 }' "$folder/$who.delay" | median)" \
        "$(awk '{ print $2 }' "$folder/$who.delay" | median)" "$(median <"$folder/$who.rate")"
done
