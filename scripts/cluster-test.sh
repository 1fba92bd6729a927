#!/usr/bin/env bash
# Tests the SQL of queries/ on DataFusion in process and on a cluster: a Ballista scheduler and two
# executors on loopback (the workspace cluster/). Building it takes most of the time.
# usage: scripts/cluster-test.sh [MINUTES]
#
# MINUTES (35) limits the build: where it takes longer, the test is SKIPPED, and what was built stays
# for the next time. The tests themselves have 10 minutes; to fail or to take longer is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

minutes=${1:-35}
case $minutes in
    '' | 0 | *[!0-9]*) echo "usage: scripts/cluster-test.sh [MINUTES]" >&2; exit 2 ;;
esac

cargo fmt --manifest-path cluster/Cargo.toml --package cluster --package query --check
test=(cargo test --manifest-path cluster/Cargo.toml --workspace --locked)
status=0
timeout --kill-after=10 "${minutes}m" "${test[@]}" --no-run || status=$?
if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
    echo "cluster: SKIPPED: not built in $minutes minutes"
    exit 0
fi
[ "$status" -eq 0 ] || exit "$status"

timeout --kill-after=10 10m "${test[@]}"
