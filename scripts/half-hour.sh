#!/usr/bin/env bash
# A new user's first half hour, step by step: what each step took, and whether it did what it should. Run it before
# a release, in a clean container or root; docs/half-hour.md says what the steps check, and how to make a root.
#
#   scripts/half-hour.sh [WIRETAX]       with the program that `make run` has built: target/release/wiretax
#   CLONE=. scripts/half-hour.sh         clones first, and has `make run` build all and measure
#   GUEST=1 ...                          and `make guest`, with which a handshake is measured in virtual time
#
# After these no step needs root or a network: as root it does the others as the user nobody, in a network namespace
# with nothing but its loopback.
set -uo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
offline=${HALF_HOUR_OFFLINE:-}
folder=${HALF_HOUR_FOLDER:-$(mktemp -d)}
trap 'rm -rf "$folder"' EXIT
SECONDS=${HALF_HOUR_SECONDS:-0}
is_root=
[ "$(id -u)" -ne 0 ] || is_root=yes
failed=0
row() { printf '%-52s %4d s  %s\n' "$1" "$2" "$3"; }

# With a network: clone, build, measure, fetch.
made() { # TARGET: by make in the clone; says when the first study's answer is on the terminal
    local began=$SECONDS line said=
    make -C "$folder/clone" "$1" 2>&1 | while IFS= read -r line; do
        printf '%s\n' "$line" >&2
        [ -z "$said" ] && [[ $line =~ ^handshake\ {2} ]] || continue
        said=yes
        row '  the first answer on the terminal' "$((SECONDS - began))" 'after its start'
    done
    return "${PIPESTATUS[0]}"
}
online() {
    local began
    if [ -n "${CLONE:-}" ]; then
        git clone --quiet "$CLONE" "$folder/clone" || return 1
        row 'git clone' "$SECONDS" ok
        began=$SECONDS
        made run || return 1
        row 'make run' "$((SECONDS - began))" ok
        wiretax=$folder/clone/target/release/wiretax
    fi
    # The guest is kept where the user of the next steps looks for it.
    if [ -n "${GUEST:-}" ]; then
        began=$SECONDS
        if [ -n "${CLONE:-}" ]; then
            XDG_CACHE_HOME=$folder/.cache made guest || return 1
        else
            XDG_CACHE_HOME=$folder/.cache "$wiretax" guest fetch || return 1
        fi
        row 'make guest' "$((SECONDS - began))" ok
    fi
}
wiretax=$(realpath -m "${1:-target/release/wiretax}")
if [ -z "$offline" ]; then
    online || { echo 'the half hour: failed while there was a network' >&2; exit 2; }
    [ -x "$wiretax" ] || { echo "error: $wiretax is not a program; run make first" >&2; exit 2; }
    if [ -n "$is_root" ]; then
        chown -R nobody "$folder/.cache" 2>/dev/null
        chown nobody "$folder"
        trap - EXIT
        export HALF_HOUR_OFFLINE=yes HALF_HOUR_FOLDER=$folder HALF_HOUR_SECONDS=$SECONDS
        # shellcheck disable=SC2016 # for the shell inside
        exec unshare --net bash -c 'ip link set lo up; exec "$@"' bash "$0" "$wiretax"
    fi
    echo 'note: not as root: the steps are not kept from the network' >&2
fi

# Without a network, as an ordinary user.
as_user=(env)
[ -z "$is_root" ] || as_user=(setpriv --reuid nobody --regid nogroup --clear-groups env "HOME=$folder")
cd "$folder" || exit 2
ours() { "${as_user[@]}" "$wiretax" "$@"; }

# step NAME COMMAND...: runs it; what it printed is in `out`, and is shown if it fails. Status 77: it cannot be done
# here, and `out` says why.
step() {
    local name=$1 began=$SECONDS got=0 state
    shift
    "$@" >out 2>&1 || got=$?
    case $got in
    0) state=ok ;;
    77) state="SKIPPED: $(tail -n 1 out)" ;;
    *) state=FAILED failed=$((failed + 1)) ;;
    esac
    row "$name" "$((SECONDS - began))" "$state"
    [ "$state" != FAILED ] || sed 's/^/    /' out | tail -n 20
}
cannot() { echo "$1"; return 77; }
# Exit status and text of a command that is refused.
refused() { # STATUS TEXT COMMAND...
    local status=$1 text=$2 got=0
    shift 2
    ours "$@" >said 2>&1 || got=$?
    cat said
    [ "$got" -eq "$status" ] && grep -qF -- "$text" said
}
no_network() {
    [ -n "$is_root" ] || { cannot 'only root can be kept from it'; return; }
    [ "$(wc -l </proc/net/route)" -le 1 ]
}
one_screen() {
    ours run --out run >screen || return 1
    cat screen
    [ "$(wc -l <screen)" -le 40 ] && [ "$(grep -vE '^(report|tables)' screen | LC_ALL=C.UTF-8 wc -L)" -le 80 ]
}
interrupted() {
    # shellcheck disable=SC2054 # a comma of the option's
    local plan=(handshake --mode tcp,tcp+tls13 --rtt 20ms --repeat 40 --no-calibration --out stopped) got=0
    # A job of a script ignores SIGINT otherwise.
    "${as_user[@]}" timeout --preserve-status --signal INT 4 env --default-signal=INT "$wiretax" "${plan[@]}" || got=$?
    [ "$got" -eq 130 ] && ours handshake --resume stopped --no-calibration
}
first_figure() { # it says the first figures before ten seconds have passed, and keeps them when it is interrupted
    "${as_user[@]}" timeout --preserve-status --signal INT 10 env --default-signal=INT "$wiretax" handshake --out first || true
    grep -q '^so far' out
}
in_words() { # each plot and figure says what it means, each caution whether the answer would change
    local html=run/report.html plots figures means
    plots=$(grep -cE '<figure class="(plot|flame)"' "$html") figures=$(grep -o '<dd class="value">' "$html" | wc -l)
    means=$(grep -oE '<(p|dd) class="means">[^<]' "$html" | wc -l)
    echo "$plots plots, $figures figures, $means sentences"
    [ "$plots" -gt 0 ] && [ "$means" -eq $((plots + figures)) ] || return 1
    [ "$(sed '/<\/header>/q' "$html" | grep -c 'role="note"')" -eq "$(grep -c '<p class="effect">' "$html")" ]
}
small() { [ "$(stat -c %s run/report.html)" -lt 5000000 ]; }
narrow() { # no table wider than a terminal of 80 columns
    command -v script >/dev/null || { cannot 'there is no program `script`'; return; }
    "${as_user[@]}" script -qec "stty rows 40 cols 80; exec '$wiretax' -q report run --html other.html" /dev/null >tables </dev/null || return 1
    [ "$(tr -d '\r' <tables | LC_ALL=C.UTF-8 wc -L)" -le 80 ]
}

# A browser, of the names and the place that the tests look for.
chromium=
for name in chromium-headless-shell chrome-headless-shell headless_shell /usr/lib/chromium/chromium-headless-shell; do
    chromium=${chromium:-$(command -v "$name")}
done
# shown WIDTH: opens the report in a window of this width, and unfolds all of it; in `shown` is how long it took until
# plots were drawn, those in view first, and what is wider than the page.
shown() {
    local browser
    [ -n "$chromium" ] || { cannot 'there is no headless Chromium'; return; }
    {
        cat run/report.html
        echo '<script>const look = () =>'
        cat "$here/crates/cli/tests/look/look.js"
        cat <<'JS'
;
(async () => {
  const nap = (ms) => new Promise((done) => setTimeout(done, ms));
  const root = document.documentElement;
  while (!root.hasAttribute("data-shown")) await nap(5);
  const first = performance.now();
  while (!root.hasAttribute("data-ready")) await nap(5);
  const drawn = performance.now();
  const plots = root.getAttribute("data-shown");
  const parsed = performance.getEntriesByType("navigation")[0].domContentLoadedEventStart;
  for (const part of document.querySelectorAll("details:not([open])")) part.open = true;
  await nap(1000);
  const { width, page, wide, count } = await look();
  console.log(`shown: after DOMContentLoaded the ${plots} plots in view in ${Math.max(0, Math.ceil(first - parsed))} ms, `
    + `all ${count} in ${Math.ceil(drawn - parsed)} ms; width ${width} page ${page} wide ${wide.length} ${wide.join("; ")}`);
})();
</script>
JS
    } >shown.html
    rm -rf profile
    # In a process group of its own: Debian's program is a script that starts another.
    setsid "${as_user[@]}" "$chromium" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
        --remote-debugging-port=0 "--user-data-dir=$folder/profile" "--window-size=$1,900" --enable-logging=stderr \
        "file://$folder/shown.html" >console 2>&1 &
    browser=$!
    for _ in $(seq 600); do
        ! grep -q 'shown: ' console || break
        sleep 0.1
    done
    kill -- "-$browser"
    wait "$browser" 2>/dev/null
    sed -n 's/.*"\(shown: .*\)", source: .*/\1/p' console | tee shown
    [ -s shown ] || { tail -n 5 console; return 1; }
    # Lines of a script's errors name none of Chromium's own files.
    ! grep 'CONSOLE.*Error' console
}
number() { sed -n "s/.*$1.*/\\1/p" shown; }
opens_soon() { # within a second, though the browser is one without a graphics card
    shown 1280 || return
    cat shown >opened
    [ "$(number 'in view in \([0-9]*\) ms')" -lt 1000 ]
}
fits() { # WIDTH: nothing is wider than the page, and the page not wider than the window
    shown "$1" || return
    [ "$(number 'width \([0-9]*\) page')" -le "$1" ] && [ "$(number 'page \([0-9]*\) wide')" -le "$1" ] &&
        [ "$(number 'wide \([0-9]*\)')" -eq 0 ]
}
in_guest() { ours handshake --clock virtual --mode tcp+tls12,tcp+tls13 --rtt 20ms --repeat 1 --out guest; }
gone() { # nothing of the lab is left: neither processes nor interfaces
    ! pgrep -u nobody -f "$wiretax" >/dev/null && ! ip -brief link 2>/dev/null | grep -q '^\(link\|hub\|wtx\)'
}

step 'no network' no_network
step 'doctor' ours doctor
step 'the first figure within 10 s' first_figure
step 'every study, answers on one screen of 80 x 40' one_screen
step 'the report weighs less than 5 MB' small
step 'it says what each figure means' in_words
step 'its tables fit 80 columns' narrow
step 'it opens in less than 1 s' opens_soon
[ ! -s opened ] || sed 's/^shown:/ /; s/; width.*//' opened
step 'it fits a phone of 390 pixels' fits 390
step 'what is c?' ours explain c
step 'a program over an emulated path' ours lab --rtt 20ms --loss 1% -- sh -c 'grep -q server /etc/hosts'
step 'recipe 1: what would TLS 1.3 save?' ours handshake --from tcp+tls12 --mode tcp+tls12,tcp+tls13 --rtt 20ms,80ms --repeat 5
step 'recipe 5: which HTTP?' ours page --page testbed-1 --link wired-10 --repeat 2 --visit first
step 'recipe 8: which TLS library?' ours stacks --scale smoke
[ -z "${GUEST:-}" ] || step 'a handshake in virtual time' in_guest
step 'a typo is answered by what was meant' refused 2 handshake handshaek
step 'a wrong unit is answered by a right one' refused 2 20ms handshake --rtt 20
step 'no such program' refused 127 'no program' lab nosuchprogram
step 'Ctrl-C keeps what was measured, --resume goes on' interrupted
step 'nothing is left behind' gone
row 'all of it' "$SECONDS" ''
echo
[ "$failed" -eq 0 ] && echo 'the half hour: passed' || { echo "the half hour: $failed steps failed"; exit 1; }
