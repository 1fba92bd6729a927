#!/usr/bin/env bash
# Compares `wiretax load` with other generators of TLS connections: the same server, the same cores,
# in turn (A B C A B C ...), full TLS 1.3 handshakes, one request a connection; or HTTP/2. Connections (requests)
# are counted by the server, CPU time by the kernel. Prints a table of medians, with the TLS library of each
# generator: much of a connection's CPU time is the library's. `plain` is a simple blocking client on the
# library of `wiretax load`: beside it the generator alone differs.
#
#   scripts/compare-load.sh [WIRETAX]     program to measure; target/release/wiretax if not given
#   HTTP=h2             requests of HTTP/2 on connections that stay open, STREAMS (10) at once on each, in place
#                       of connections; with h2load, hey and oha
#   HAPROXY=PROGRAM     serve by this HAProxy instead of nginx: with a fast library the generator is
#                       the limit, not the server
#   KEY=rsa             an RSA-2048 certificate; ec (P-256) if not given
#   PLAIN=PROGRAM       the blocking client (crates/instruments/load/examples/plain.rs); built if not given
#   ROUNDS=5 SECONDS_EACH=3 CONNECTIONS=16 SERVER_CPUS=0 CLIENT_CPUS=1 TOOLS="wiretax hey"
#
# Exit codes: 0 done, 2 wrongly called, 3 this machine lacks something.
#
# Needs nginx and openssl; the generators that are not there are left out. In Debian they are
# openssl, wrk, apache2-utils (ab), nghttp2-client (h2load), hey, siege and httperf; oha, on rustls as
# `wiretax load` is, by `cargo install --locked oha@1.16.0`.
set -euo pipefail
# Decimal points in all figures.
export LC_ALL=C

wiretax=$(realpath -m "${1:-target/release/wiretax}")
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-3}
connections=${CONNECTIONS:-16}
http=${HTTP:-1.1}
streams=${STREAMS:-10}
case $http in
    1.1) unit=connection listen= alpn= ;;
    h2) unit=request listen=' http2' alpn='alpn h2' ;;
    *) echo "error: HTTP is 1.1 or h2, not $http" >&2; exit 2 ;;
esac
server_cpus=${SERVER_CPUS:-0}
client_cpus=${CLIENT_CPUS:-1}
threads=$(awk -F, '{ n = 0; for (i = 1; i <= NF; i++) { split($i, r, "-"); n += (r[2] ? r[2] - r[1] : 0) + 1 } print n }' <<<"$client_cpus")
key=${KEY:-ec}

# The package in Debian that has a program; what is elsewhere says so.
package_of() {
    case $1 in
        taskset) echo util-linux ;;
        ab) echo apache2-utils ;;
        h2load) echo nghttp2-client ;;
        *) basename "$1" ;;
    esac
}

for program in "${HAPROXY:-nginx}" openssl taskset curl; do
    command -v "$program" >/dev/null ||
        { echo "error: $program is not installed; in Debian: apt-get install $(package_of "$program")" >&2; exit 3; }
done
[ -z "${HAPROXY:-}" ] || HAPROXY=$(realpath "$(command -v "$HAPROXY")")
[ -x "$wiretax" ] || { echo "error: $wiretax is not a program; run 'make build' first" >&2; exit 2; }

for port in 18443 18080; do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
        echo "error: port $port of 127.0.0.1 is in use; end what listens there" >&2
        exit 3
    fi
done

checkout=$(cd "$(dirname "$0")/.." && pwd)
all="wiretax plain s_time s_time-x4 wrk ab h2load hey siege httperf oha"
# Those that speak HTTP/2.
[ "$http" = 1.1 ] || all="wiretax h2load hey oha"
case " ${TOOLS:-$all} " in
    *' plain '*)
        if [ -z "${PLAIN:-}" ]; then
            (cd "$checkout" && cargo build --release --locked --quiet -p load --example plain)
            PLAIN=${CARGO_TARGET_DIR:-$checkout/target}/release/examples/plain
        fi
        PLAIN=$(realpath "$PLAIN") ;;
esac

folder=$(mktemp -d)
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
cd "$folder"

case $key in
    ec) openssl ecparam -name prime256v1 -genkey -noout -out key.pem ;;
    rsa) openssl genrsa -out key.pem 2048 2>/dev/null ;;
    *) echo "error: KEY is ec or rsa, not $key" >&2; exit 2 ;;
esac
openssl req -x509 -key key.pem -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
    -addext basicConstraints=critical,CA:FALSE -out cert.pem
# Tickets off: some generators resume sessions whether or not one wants it. One suite and one group,
# since the generators' preferences differ.
workers=$(awk -F, '{ n = 0; for (i = 1; i <= NF; i++) { split($i, r, "-"); n += (r[2] ? r[2] - r[1] : 0) + 1 } print n }' <<<"$server_cpus")
cat >nginx.conf <<CONF
worker_processes $workers; daemon off; pid pid; error_log stderr crit;
events { worker_connections 8192; }
http {
    access_log off;
    client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;
    server {
        listen 127.0.0.1:18443 ssl$listen backlog=4096 reuseport;
        keepalive_requests 100000000;
        ssl_certificate cert.pem; ssl_certificate_key key.pem;
        ssl_protocols TLSv1.3; ssl_ecdh_curve X25519;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
        ssl_session_tickets off; ssl_session_cache off;
        location / { return 200 "ok"; }
    }
    server { listen 127.0.0.1:18080; location / { stub_status; } }
}
CONF
cat cert.pem key.pem >both.pem
cat >haproxy.cfg <<CONF
global
    nbthread $workers
    maxconn 8192
    tune.ssl.cachesize 0
    ssl-default-bind-options ssl-min-ver TLSv1.3 no-tls-tickets
    ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256
    ssl-default-bind-curves X25519
defaults
    mode http
    timeout client 10s
frontend load
    bind 127.0.0.1:18443 ssl crt both.pem $alpn
    http-request return status 200 content-type text/plain string ok
frontend figures
    bind 127.0.0.1:18080
    stats enable
    stats uri /
CONF
if [ -n "${HAPROXY:-}" ]; then
    name="$("$HAPROXY" -vv | sed -n 's/^Running on SSL library *: *//p; s/^Running on OpenSSL version : //p' | head -n 1)"
    name="HAProxy ($name)"
    taskset -c "$server_cpus" "$HAPROXY" -db -q -f haproxy.cfg &
else
    name=nginx
    taskset -c "$server_cpus" nginx -p "$folder" -e stderr -c nginx.conf &
fi
server=$!
begun=
for _ in $(seq 100); do
    curl -sf http://127.0.0.1:18080/ >/dev/null && { begun=yes; break; }
    sleep 0.1
done
[ -n "$begun" ] || { echo "error: $name did not start" >&2; exit 3; }

# Requests that the server has answered; nginx counts the one for this figure too.
own=1
[ -z "${HAPROXY:-}" ] || own=0
answered() {
    if [ -n "${HAPROXY:-}" ]; then
        curl -sf 'http://127.0.0.1:18080/;csv' | awk -F, '
            NR == 1 { for (i = 1; i <= NF; i++) if ($i == "hrsp_2xx") at = i }
            $1 == "load" && $2 == "FRONTEND" { print $at }'
    else
        curl -sf http://127.0.0.1:18080/ | awk 'NR == 3 { print $3 }'
    fi
}

url=https://127.0.0.1:18443/
cat >siegerc <<'CONF'
verbose = false
quiet = true
json_output = false
connection = close
protocol = HTTP/1.1
limit = 1000
CONF
# The version of rustls that the checkout builds with.
rustls="rustls $(sed -n '/^name = "rustls"$/{n;s/version = "\(.*\)"/\1/p;q}' "$checkout/Cargo.lock"), AWS-LC"
# The TLS library of a generator: as it is linked, or as it is known to be.
library_of() {
    local path linked
    case $1 in
        wiretax | plain) echo "$rustls"; return ;;
        s_time*) path=$(command -v openssl) ;;
        oha) echo rustls; return ;;
        hey) echo "Go crypto/tls, $(grep -aom 1 'go1\.[0-9][0-9.]*' "$(command -v hey)" || echo 'of an unknown release')"; return ;;
        *) path=$(command -v "$1") ;;
    esac
    linked=$(ldd "$path" 2>/dev/null | awk '/libssl|libgnutls|libwolfssl|libmbedtls/ { print $3; exit }')
    case $linked in
        '') echo 'linked in, unknown' ;;
        # The text that every build of it carries.
        *libssl*) grep -aom 1 'OpenSSL [0-9][0-9.]*[a-z]*' "$(dirname "$linked")/$(basename "$linked" | sed s/libssl/libcrypto/)" || basename "$linked" ;;
        *) basename "$linked" ;;
    esac
}

command_of() {
    case $http-$1 in
        h2-wiretax) echo "$wiretax -q load $url --http h2 --streams $streams -c $connections -t $threads -d ${seconds}s --ca cert.pem"; return ;;
        h2-h2load) echo "h2load -D $seconds -c $connections -m $streams -t $threads $url"; return ;;
        # It has a connection for all its workers.
        h2-hey) echo "hey -h2 -z ${seconds}s -c $((connections * streams)) -cpus $threads $url"; return ;;
        h2-oha) echo "oha --no-tui --insecure --http2 -c $connections -p $streams -z ${seconds}s $url"; return ;;
        h2-*) echo "error: no generator of HTTP/2 is called $1; there are: $all" >&2; exit 2 ;;
    esac
    case $1 in
        wiretax) echo "$wiretax -q load $url -c $connections -t $threads -d ${seconds}s --ca cert.pem" ;;
        plain) echo "$PLAIN 127.0.0.1:18443 localhost cert.pem $connections $seconds" ;;
        s_time) echo "openssl s_time -connect 127.0.0.1:18443 -new -tls1_3 -www / -time $seconds" ;;
        # It has one connection at a time; several of it keep the core busy.
        s_time-x4) echo "sh -c 'for n in 1 2 3 4; do openssl s_time -connect 127.0.0.1:18443 -new -tls1_3 -www / -time $seconds & done; wait'" ;;
        wrk) echo "wrk -t$threads -c$connections -d${seconds}s -H 'Connection: close' $url" ;;
        ab) echo "ab -q -t $seconds -n 10000000 -c $connections -f TLS1.3 $url" ;;
        h2load) echo "h2load -n $((seconds * 1000)) -c $connections -t $threads --h1 -H 'Connection: close' $url" ;;
        hey) echo "hey -z ${seconds}s -c $connections -disable-keepalive -cpus $threads $url" ;;
        siege) echo "siege -R siegerc -b -c $connections -t ${seconds}S $url" ;;
        httperf) echo "httperf --server 127.0.0.1 --port 18443 --ssl --num-conns $((seconds * 1500)) --rate 1500 --timeout 5" ;;
        oha) echo "oha --no-tui --insecure --disable-keepalive -c $connections -z ${seconds}s $url" ;;
        *) echo "error: no generator is called $1; there are: $all" >&2; exit 2 ;;
    esac
}
tools=()
for tool in ${TOOLS:-$all}; do
    command_of "$tool" >/dev/null
    program=${tool%-x4}
    case $program in
        wiretax | plain | s_time) ;;
        oha) command -v oha >/dev/null || { echo "oha is not installed: left out (cargo install --locked oha@1.16.0)" >&2; continue; } ;;
        *) command -v "$program" >/dev/null ||
            { echo "$program is not installed: left out (apt-get install $(package_of "$program"))" >&2; continue; } ;;
    esac
    tools+=("$tool")
done
[ ${#tools[@]} -gt 0 ] || { echo "error: none of the generators is here" >&2; exit 3; }

for round in $(seq "$rounds"); do
    for tool in "${tools[@]}"; do
        before=$(answered)
        began=$(date +%s.%N)
        TIMEFORMAT='%U %S'
        cpu=$( { time taskset -c "$client_cpus" timeout --foreground $((seconds * 4 + 20)) \
            bash -c "$(command_of "$tool")" >out.txt 2>&1 || true; } 2>&1 | tail -n 1)
        ended=$(date +%s.%N)
        after=$(answered)
        awk -v tool="$tool" -v done="$((after - before - own))" -v from="$began" -v to="$ended" -v cpu="$cpu" \
            'BEGIN { split(cpu, t, " "); n = (done > 0) ? done : 1;
                     printf "%s %.1f %.1f %d\n", tool, done / (to - from), (t[1] + t[2]) * 1e6 / n, done }' |
            tee -a rounds.txt >&2
    done
done

median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
ours=$(awk '$1 == "wiretax" { print $2 }' rounds.txt | median)
at_once="$connections connections"
[ "$http" = 1.1 ] || at_once="HTTP/2, $at_once of $streams streams"
echo "$name on CPU $server_cpus, generator on CPU $client_cpus, $key key, $at_once, medians of $rounds rounds of $seconds s"
echo
echo "| generator | TLS library | ${unit}s/s | wiretax is | CPU us/$unit |"
echo "|---|---|---:|---:|---:|"
for tool in "${tools[@]}"; do
    rate=$(awk -v tool="$tool" '$1 == tool { print $2 }' rounds.txt | median)
    cpu=$(awk -v tool="$tool" '$1 == tool { print $3 }' rounds.txt | median)
    awk -v tool="$tool" -v library="$(library_of "$tool")" -v rate="$rate" -v cpu="$cpu" -v ours="${ours:-0}" \
        'BEGIN { times = (ours > 0 && rate > 0) ? sprintf("%.2f x", ours / rate) : "-"
                 printf "| %s | %s | %.0f | %s | %.0f |\n", tool, library, rate, times, cpu }'
done
