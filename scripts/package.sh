#!/usr/bin/env bash
# Makes a Debian package of a program that is built: with its man pages, completions and units, and with a
# static program beside it, to be copied to servers.
# usage: scripts/package.sh PROGRAM STATIC   (as `make package` does)
set -euo pipefail

usage='usage: scripts/package.sh PROGRAM STATIC'
program=$(realpath "${1:?$usage}")
static=$(realpath "${2:?$usage}")
cargo=${CARGO:-cargo}
cd "$(dirname "$0")/.."
# The version that this was tried with.
version=3.8.0
tools=$PWD/target/tools
export PATH="$tools/bin:$PATH"

if ! cargo-deb --version 2>/dev/null | grep -qw "$version"; then
    echo "package: installing cargo-deb $version from crates.io" >&2
    "$cargo" install --locked --quiet --debug cargo-deb --version "$version" --root "$tools" \
        --target-dir "$tools/build"
    rm -rf "$tools/build"
fi

made=target/package
rm -rf "$made"
mkdir -p "$made/completions" "$made/units"
"$program" man "$made/man"
"$program" completions bash >"$made/completions/wiretax"
"$program" completions zsh >"$made/completions/_wiretax"
"$program" completions fish >"$made/completions/wiretax.fish"
for unit in packaging/*.service; do
    sed 's|/usr/local/bin/wiretax|/usr/bin/wiretax|' "$unit" >"$made/units/$(basename "$unit")"
done
cp "$static" "$made/wiretax-static"
rm -f target/debian/*.deb
"$cargo" deb --package cli --no-build --quiet
ls target/debian/*.deb
