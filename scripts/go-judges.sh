#!/usr/bin/env bash
# Builds h2spec of the Go module proxy as target/judges/h2spec/h2spec, for the test that lets it judge our
# HTTP/2 (crates/instruments/web/tests/judges.rs); without it that test is skipped.
# usage: scripts/go-judges.sh
set -euo pipefail
cd "$(dirname "$0")/.."

place=target/judges/h2spec

if ! command -v go >/dev/null; then
    echo "go-judges: go is not found" >&2
    echo "hint: install Go 1.21 or later, then run this again" >&2
    exit 1
fi
mkdir -p "$place"
# go.sum has the hash of each module, and readonly keeps it as it is.
cp scripts/judges/h2spec/go.mod scripts/judges/h2spec/go.sum "$place"
(cd "$place" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOTOOLCHAIN=local timeout 300 \
    go build -ldflags=-s -o h2spec github.com/summerwind/h2spec/cmd/h2spec)
"$place/h2spec" --version >/dev/null
