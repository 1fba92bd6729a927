#!/usr/bin/env bash
# Compares the web server of crates/instruments/web with others under h2load: HTTP/2 over TLS with nghttpd,
# HTTP/1.1 over TLS with nginx. One core for the server, one for h2load, in turn (A B A B ...), TLS 1.3 with
# AES-128-GCM, the same bytes of body. Prints each round's requests per second and their ratio, the
# server's CPU time per request by the kernel's count (in steps of 10 ms per round) and its ratio, and the
# medians of the ratios. Beside other work on the machine the CPU time says more than the rate.
#
#   scripts/compare-web.sh [SERVE]     the server; target/dist/examples/serve if not given, and built
#                                      as what is packaged is
#   ROUNDS=7 REQUESTS=100000 CONNECTIONS=16 STREAMS=10 BYTES=100 SERVER_CPUS=0 CLIENT_CPUS=1
#   PROTOCOLS="h2 h1"
#
# Exit codes: 0 done, 2 wrongly called, 3 this machine lacks something.
#
# Needs h2load, nghttpd, nginx and openssl; in Debian nghttp2-client, nghttp2-server, nginx and openssl.
set -euo pipefail
# Decimal points in all figures.
export LC_ALL=C
# Programs of the administrator are not in every user's PATH.
PATH=$PATH:/usr/sbin:/sbin

rounds=${ROUNDS:-7}
requests=${REQUESTS:-100000}
connections=${CONNECTIONS:-16}
streams=${STREAMS:-10}
bytes=${BYTES:-100}
server_cpus=${SERVER_CPUS:-0}
client_cpus=${CLIENT_CPUS:-1}
protocols=${PROTOCOLS:-h2 h1}

for number in "$rounds" "$requests" "$connections" "$streams" "$bytes"; do
    case $number in
        '' | *[!0-9]* | 0) echo "error: \`$number\` is not a count" >&2; exit 2 ;;
    esac
done
for protocol in $protocols; do
    case $protocol in
        h1 | h2) ;;
        *) echo "error: PROTOCOLS has h2 and h1, not $protocol" >&2; exit 2 ;;
    esac
done

# The package in Debian that has a program.
package_of() {
    case $1 in
        taskset) echo util-linux ;;
        h2load) echo nghttp2-client ;;
        nghttpd) echo nghttp2-server ;;
        *) echo "$1" ;;
    esac
}
for program in h2load nghttpd nginx openssl taskset; do
    command -v "$program" >/dev/null ||
        { echo "error: $program is not installed; in Debian: apt-get install $(package_of "$program")" >&2; exit 3; }
done

checkout=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -eq 0 ]; then
    (cd "$checkout" && cargo build --profile dist --locked --quiet -p web --example serve)
fi
serve=$(realpath -m "${1:-${CARGO_TARGET_DIR:-$checkout/target}/dist/examples/serve}")
[ -x "$serve" ] || { echo "error: $serve is not a program" >&2; exit 2; }

folder=$(mktemp -d)
servers=()
cleanup() {
    [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
cd "$folder"

ours=18443 nghttpd=18444 nginx=18445
for port in $ours $nghttpd $nginx; do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
        echo "error: port $port of 127.0.0.1 is in use; end what listens there" >&2
        exit 3
    fi
done

openssl ecparam -name prime256v1 -genkey -noout -out key.pem
openssl req -x509 -key key.pem -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
    -addext basicConstraints=critical,CA:FALSE -out cert.pem
mkdir files
head -c "$bytes" /dev/zero | tr '\0' x >"files/$bytes"
cat >nginx.conf <<CONF
worker_processes 1; daemon off; master_process off; pid pid; error_log stderr crit;
events { worker_connections 4096; }
http {
    access_log off; keepalive_requests 1000000000; open_file_cache max=10; sendfile on;
    client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;
    server {
        listen 127.0.0.1:$nginx ssl; root files;
        ssl_certificate cert.pem; ssl_certificate_key key.pem; ssl_protocols TLSv1.3;
    }
}
CONF
taskset -c "$server_cpus" "$serve" 127.0.0.1:$ours cert.pem key.pem & servers+=($!)
taskset -c "$server_cpus" nghttpd -a 127.0.0.1 -d files $nghttpd key.pem cert.pem >nghttpd.log 2>&1 & servers+=($!)
taskset -c "$server_cpus" nginx -p "$folder" -e stderr -c nginx.conf & servers+=($!)
for port in $ours $nghttpd $nginx; do
    for try in $(seq 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
        [ "$try" -lt 100 ] || { echo "error: nothing listens at port $port" >&2; exit 3; }
        sleep 0.1
    done
done

ticks=$(getconf CLK_TCK)
# User and system time of a process, in ticks.
cpu_of() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }

# rate SERVER PORT OPTIONS...: requests per second, all of them answered by 2xx, and the server's CPU time
# of a request in microseconds.
rate() {
    local pid=$1 port=$2 before after
    shift 2
    before=$(cpu_of "$pid")
    taskset -c "$client_cpus" h2load -t 1 -c "$connections" -n "$requests" "$@" \
        "https://127.0.0.1:$port/$bytes" >out.txt 2>&1 || { cat out.txt >&2; exit 3; }
    after=$(cpu_of "$pid")
    awk -v requests="$requests" -v ticks="$((after - before))" -v second="$ticks" '
        /^finished in/ { rate = $4 }
        /^status codes:/ { good = $3 }
        END { if (good != requests) exit 1; printf "%.0f %.2f", rate, ticks / second * 1e6 / requests }' out.txt ||
        { echo "error: not every request was answered" >&2; cat out.txt >&2; exit 3; }
}

median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

echo "server on CPU $server_cpus, h2load on CPU $client_cpus; TLS 1.3, $connections connections, $bytes bytes of body, $rounds rounds of $requests requests"
for protocol in $protocols; do
    case $protocol in
        h2) peer=nghttpd pid=${servers[1]} port=$nghttpd options=(-m "$streams") ;;
        h1) peer=nginx pid=${servers[2]} port=$nginx options=(--h1) ;;
    esac
    echo
    echo "| $protocol, round | ours, requests/s | $peer | ours / $peer | CPU us/request, ours | $peer | $peer / ours |"
    echo "|---:|---:|---:|---:|---:|---:|---:|"
    : >ratios.txt
    for round in $(seq "$rounds"); do
        # Who is first changes, so that neither always runs on a warmer machine.
        if [ $((round % 2)) -eq 1 ]; then
            own=$(rate "${servers[0]}" $ours "${options[@]}"); other=$(rate "$pid" "$port" "${options[@]}")
        else
            other=$(rate "$pid" "$port" "${options[@]}"); own=$(rate "${servers[0]}" $ours "${options[@]}")
        fi
        awk -v round="$round" -v own="$own" -v other="$other" 'BEGIN {
            split(own, a); split(other, b)
            printf "| %d | %d | %d | %.3f | %.2f | %.2f | %.3f |\n", round, a[1], b[1], a[1] / b[1], a[2], b[2], b[2] / a[2] }' |
            tee -a ratios.txt
    done
    column() { awk -v at="$1" '{ print $at }' ratios.txt | median; }
    echo "| median | | | $(column 8) | | | $(column 14) |"
done
