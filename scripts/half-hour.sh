#!/usr/bin/env bash
# A new user's first half hour, step by step: what each step took, and whether it did what it should. Run it before
# a release, in a clean container or root (scripts/clean-root.sh makes one).
#
#   scripts/half-hour.sh [WIRETAX]       with the program that `make run` has built: target/release/wiretax
#   CLONE=. scripts/half-hour.sh         clones first, and has `make run` build all and measure
#
# After `make run` no step needs root or a network: as root it does all of them as the user nobody, and
# `OFFLINE=1 scripts/in-root.sh ROOT scripts/half-hour.sh` gives it none but its own loopback.
set -uo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ -n "${CLONE:-}" ]; then
    SECONDS=0
    git clone --quiet "$CLONE" "$folder/clone" || exit 2
    make -C "$folder/clone" run || exit 2
    printf '%-52s %4d s  ok\n' 'clone and `make run`' "$SECONDS"
    set -- "$folder/clone/target/release/wiretax"
fi
wiretax=$(realpath "${1:-target/release/wiretax}")
[ -x "$wiretax" ] || { echo "error: $wiretax is not a program; run make first" >&2; exit 2; }
as_user=(env)
if [ "$(id -u)" -eq 0 ]; then
    as_user=(setpriv --reuid nobody --regid nogroup --clear-groups env "HOME=$folder")
    chown nobody "$folder"
fi
cd "$folder"
ours() { "${as_user[@]}" "$wiretax" "$@"; }
failed=0

# step NAME COMMAND...: runs it; what it printed is in `out`, and is shown if it fails.
step() {
    local name=$1 began=$SECONDS state=ok
    shift
    "$@" >out 2>&1 || { state=FAILED; failed=$((failed + 1)); }
    printf '%-52s %4d s  %s\n' "$name" "$((SECONDS - began))" "$state"
    [ "$state" = ok ] || sed 's/^/    /' out | tail -n 20
}
# Exit status and text of a command that is refused.
refused() { # STATUS TEXT COMMAND...
    local status=$1 text=$2 got=0
    shift 2
    ours "$@" >said 2>&1 || got=$?
    cat said
    [ "$got" -eq "$status" ] && grep -qF -- "$text" said
}
one_screen() {
    ours run --out run >screen || return 1
    cat screen
    [ "$(wc -l <screen)" -le 40 ] && [ "$(grep -vE '^(report|tables)' screen | LC_ALL=C.UTF-8 wc -L)" -le 80 ]
}
interrupted() {
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
    plots=$(grep -c '<figure class="plot"' "$html") figures=$(grep -o '<dd class="value">' "$html" | wc -l)
    means=$(grep -oE '<(p|dd) class="means">[^<]' "$html" | wc -l)
    echo "$plots plots, $figures figures, $means sentences"
    [ "$plots" -gt 0 ] && [ "$means" -eq $((plots + figures)) ] || return 1
    [ "$(sed '/<\/header>/q' "$html" | grep -c 'role="note"')" -eq "$(grep -c '<p class="effect">' "$html")" ]
}
small() { [ "$(stat -c %s run/report.html)" -lt 5000000 ]; }
narrow() { # no table wider than a terminal of 80 columns
    command -v script >/dev/null || return 0
    "${as_user[@]}" script -qec "stty rows 40 cols 80; exec '$wiretax' -q report run --html other.html" /dev/null >tables </dev/null || return 1
    [ "$(tr -d '\r' <tables | LC_ALL=C.UTF-8 wc -L)" -le 80 ]
}
gone() { # nothing of the lab is left: neither processes nor interfaces
    ! pgrep -u nobody -f "$wiretax" >/dev/null && ! ip -brief link 2>/dev/null | grep -q '^\(link\|hub\|wtx\)'
}

step 'doctor' ours doctor
step 'the first figure within 10 s' first_figure
step 'every study, answers on one screen of 80 x 40' one_screen
step 'the report weighs less than 5 MB' small
step 'it says what each figure means' in_words
step 'its tables fit 80 columns' narrow
step 'what is c?' ours explain c
step 'a program over an emulated path' ours lab --rtt 20ms --loss 1% -- sh -c 'grep -q server /etc/hosts'
step 'recipe 1: what would TLS 1.3 save?' ours handshake --from tcp+tls12 --mode tcp+tls12,tcp+tls13 --rtt 20ms,80ms --repeat 5
step 'recipe 5: which HTTP?' ours page --page testbed-1 --link wired-10 --repeat 2 --visit first
step 'recipe 8: which TLS library?' ours stacks --scale smoke
step 'a typo is answered by what was meant' refused 2 handshake handshaek
step 'a wrong unit is answered by a right one' refused 2 20ms handshake --rtt 20
step 'no such program' refused 127 'no program' lab nosuchprogram
step 'Ctrl-C keeps what was measured, --resume goes on' interrupted
step 'nothing is left behind' gone
printf '%-52s %4d s\n' 'all of it' "$SECONDS"
echo
[ "$failed" -eq 0 ] && echo 'the half hour: passed' || { echo "the half hour: $failed steps failed"; exit 1; }
