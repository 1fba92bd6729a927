#!/usr/bin/env bash
# Repeats the tests that use the lab, a clock or another program, beside a busy machine.
# usage: scripts/soak.sh [TIMES] [NAME...]
#
# TIMES (50): how often each test runs. NAME: only programs or tests whose names contain one of these.
# Builds once. A loop for each processor runs beside, and is ended with this script, whatever ends it.
# Prints each failure with the command that runs the test again, and a table at the end; ends with an
# error if any test failed. SOAK_SECONDS: begins no further round after so many seconds.
set -euo pipefail
cd "$(dirname "$0")/.."

times=${1:-50}
case $times in
    '' | 0 | *[!0-9]*) echo "usage: scripts/soak.sh [TIMES] [NAME...]" >&2; exit 2 ;;
esac
shift || true
limit=${SOAK_SECONDS:-0}

out=target/soak
rm -rf "$out"
mkdir -p "$out"

echo "soak: building" >&2
scripts/test-programs.sh | sed -nE 's/^(timed|guest) ([^ ]*) [^ ]* ([^ ]*) [^ ]* (.*)/\2:\3 \4/p' >"$out/programs"
[ -s "$out/programs" ] || { echo "soak: there is no test program" >&2; exit 1; }

# Every test as a line `program path test`.
while read -r program path; do
    "$path" --list 2>/dev/null | sed -n "s|^\\(.*\\): test\$|$program $path \\1|p"
done <"$out/programs" >"$out/tests"
if [ $# -gt 0 ]; then
    pattern=$(printf '%s\n' "$@")
    grep -F -e "$pattern" "$out/tests" >"$out/chosen" || { echo "soak: no test has such a name" >&2; exit 2; }
    mv "$out/chosen" "$out/tests"
fi

busy=()
end() {
    trap - EXIT INT TERM
    kill "${busy[@]}" 2>/dev/null || true
    wait "${busy[@]}" 2>/dev/null || true
    table
    exit "${1:-1}"
}
table() {
    [ -s "$out/results" ] || return 0
    printf '\n%-80s %6s %8s\n' test runs failures
    awk '{ runs[$1]++; failed[$1] += $2 != 0 } END { for (test in runs) printf "%-80s %6d %8d\n", test, runs[test], failed[test] }' \
        "$out/results" | sort -k3,3nr -k1,1
    awk '{ runs++; failed += $2 != 0 } END { printf "soak: %d runs, %d failed\n", runs, failed }' "$out/results"
}
: >"$out/results"
trap 'end 130' INT
trap 'end 143' TERM
trap 'end 1' EXIT
for ((processor = 0; processor < $(nproc); processor++)); do
    (while :; do :; done) &
    busy+=($!)
done

echo "soak: $(wc -l <"$out/tests") tests, $times times each, beside $(nproc) busy loops" >&2
for ((round = 1; round <= times; round++)); do
    while read -r program path test; do
        crate=${program%%:*}
        status=0
        timeout --foreground 180 "$path" --exact "$test" --nocapture </dev/null >"$out/log" 2>&1 || status=$?
        echo "$program::$test $status" >>"$out/results"
        if [ "$status" -ne 0 ]; then
            mv "$out/log" "$out/$crate-${test//[^a-zA-Z0-9_]/-}-$round.log"
            echo "soak: round $round: $program $test FAILED ($status)" >&2
            tail -n 15 "$out/$crate-${test//[^a-zA-Z0-9_]/-}-$round.log" >&2
            echo "soak: again: $path --exact $test" >&2
        fi
    done <"$out/tests"
    if [ "$limit" -gt 0 ] && [ "$SECONDS" -ge "$limit" ]; then
        echo "soak: stopped after round $round of $times, $SECONDS s" >&2
        break
    fi
done
failures=$(awk '$2 != 0' "$out/results" | wc -l)
end $((failures > 0))
