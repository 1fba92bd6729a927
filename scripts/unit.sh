#!/usr/bin/env bash
# Runs the workspace's tests, and says at the end which were skipped, and why.
# usage: scripts/unit.sh
#
# What needs a guest is not among them: `make guest-test` runs it.
# Two programs run at a time: of those that use the lab or a clock one after the other, and beside them
# the rest, which take one processor. A program's output is printed when it has ended.
# WIRETAX_REQUIRE=all, or a list as `lab,tshark`: a test that is skipped for the lack of one of these
# fails (crates/lab-test/src/need.rs has the names).
set -euo pipefail
cd "$(dirname "$0")/.."

out=$PWD/target/tests
rm -rf "$out"
mkdir -p "$out"
export WIRETAX_SKIPS=$PWD/target/skipped-tests
: >"$WIRETAX_SKIPS"

scripts/test-programs.sh >"$out/programs"
[ -s "$out/programs" ] || { echo "unit: there is no test program" >&2; exit 1; }

# run LANE: its programs in turn.
run() {
    local lane=$1 began log status crate kind name folder path
    while read -r _ crate kind name folder path; do
        began=$SECONDS status=0 log=$out/$crate-$kind-$name.log
        (cd "$folder" && CARGO_MANIFEST_DIR=$folder "$path" </dev/null >"$log" 2>&1) || status=$?
        {
            flock 9
            printf '\n     Running %s %s %s (%d s)\n' "$crate" "$kind" "$name" "$((SECONDS - began))"
            cat "$log"
            if [ "$status" -ne 0 ]; then
                echo "unit: $crate $kind $name FAILED ($status); again: cargo test -p $crate"
                echo "$crate $kind $name" >>"$out/failed"
            fi
        } 9>"$out/lock"
    done < <(grep "^$lane " "$out/programs")
}
# What a shell runs in the background ignores SIGINT, which tests of the first kind send.
RUST_TEST_THREADS=1 run pure &
pure=$!
run timed
wait "$pure"

status=0
"${CARGO:-cargo}" test --workspace --locked --doc --quiet || status=1
echo "skipped: $(wc -l <"$WIRETAX_SKIPS") tests could not run here"
sort "$WIRETAX_SKIPS" | sed 's/^/  SKIPPED /'
if [ -s "$out/failed" ]; then
    echo "unit: FAILED:"
    sed 's/^/  /' "$out/failed"
    status=1
fi
exit "$status"
