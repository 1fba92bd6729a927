#!/usr/bin/env bash
# Runs the workspace's tests, and says at the end which were skipped, and why.
# usage: scripts/unit.sh [ARGUMENTS OF CARGO TEST]
#
# WIRETAX_REQUIRE=all, or a list as `lab,tshark`: a test that is skipped for the lack of one of these
# fails (crates/lab-test/src/need.rs has the names).
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p target
export WIRETAX_SKIPS=$PWD/target/skipped-tests
: >"$WIRETAX_SKIPS"
status=0
"${CARGO:-cargo}" test --workspace --locked "$@" || status=$?
echo "skipped: $(wc -l <"$WIRETAX_SKIPS") tests could not run here"
sort "$WIRETAX_SKIPS" | sed 's/^/  SKIPPED /'
exit "$status"
