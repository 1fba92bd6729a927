#!/usr/bin/env bash
# Installs npm's spdy 4.0.2 in target/judges, for the tests that let it judge our SPDY
# (crates/proto/spdy/tests/judges); without it they are skipped.
# usage: scripts/node-judges.sh
#
# It works on Node 18 to 22: later ones lack what it needs. Where the system has none of these, Debian's
# is installed, if this user may; else one from npm beside it.
set -euo pipefail
cd "$(dirname "$0")/.."

place=target/judges

works() {
    local major
    major=$("$1" --version 2>/dev/null | sed -n 's/^v\([0-9]*\)\..*/\1/p')
    [ "${major:-0}" -ge 18 ] && [ "$major" -le 22 ]
}

if ! works node || ! command -v npm >/dev/null; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null
    fi
fi
if ! command -v npm >/dev/null; then
    echo "node-judges: npm is not found" >&2
    echo "hint: install Node 18 to 22 and npm, then run this again" >&2
    exit 1
fi

# Node's own packages are the optional ones.
omit=()
! works node || omit=(--omit=optional)
mkdir -p "$place"
cp scripts/judges/package.json scripts/judges/package-lock.json "$place"
# The lock file has the hash of each package; none of them runs a script of its own here.
npm ci --prefix "$place" --ignore-scripts --no-audit --no-fund --silent "${omit[@]}"
NODE_NO_WARNINGS=1 "$([ -x "$place/node_modules/.bin/node" ] && echo "$place/node_modules/.bin/node" || echo node)" \
    -e "require('./$place/node_modules/spdy')"
