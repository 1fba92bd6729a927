#!/usr/bin/env bash
# Installs aioquic of PyPI in target/judges/python, for the test that lets it judge our HTTP/3
# (crates/instruments/web/tests/judges.rs); without it that test is skipped.
# usage: scripts/python-judges.sh
set -euo pipefail
cd "$(dirname "$0")/.."

place=target/judges/python

if ! python3 -c 'import ensurepip' 2>/dev/null; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
    else
        echo "python-judges: this machine has no Python that makes virtual environments" >&2
        echo "hint: install it (in Debian: apt-get install python3-venv), then run this again" >&2
        exit 1
    fi
fi
[ -x "$place/bin/pip" ] || python3 -m venv "$place"
# Each file has its hash there. Wheels only: a source would run its own build, and fetch what that needs.
"$place/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
    --requirement scripts/judges/requirements.txt
"$place/bin/python3" -c 'import aioquic.h3.connection'
