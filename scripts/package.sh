#!/usr/bin/env bash
# Makes a Debian package of a program that is built: with its man pages, completions and units.
# usage: scripts/package.sh PROGRAM   (as `make package` does)
set -euo pipefail

program=$(realpath "${1:?usage: scripts/package.sh PROGRAM}")
cargo=${CARGO:-cargo}
cd "$(dirname "$0")/.."
# The version that this was tried with.
version=3.8.0

if ! "$cargo" deb --version >/dev/null 2>&1; then
    echo "package: installing cargo-deb $version from crates.io" >&2
    "$cargo" install --locked --quiet cargo-deb --version "$version"
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
"$cargo" deb --package cli --no-build --quiet
ls target/debian/*.deb
