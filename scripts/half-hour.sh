#!/usr/bin/env bash
# A new user's first half hour, step by step, with the program that `make run` has built: what each step took,
# and whether it did what it should. Run it before a release, in a clean container or root.
#
#   scripts/half-hour.sh [WIRETAX]       target/release/wiretax if not given
#
# As root it does all of it as the user nobody: no step needs root.
set -uo pipefail

wiretax=$(realpath "${1:-target/release/wiretax}")
[ -x "$wiretax" ] || { echo "error: $wiretax is not a program; run make first" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
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
step 'every study, answers on one screen of 80 x 40' one_screen
step 'the report weighs less than 5 MB' small
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
echo
[ "$failed" -eq 0 ] && echo 'the half hour: passed' || { echo "the half hour: $failed steps failed"; exit 1; }
