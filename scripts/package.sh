#!/usr/bin/env bash
# Makes a Debian package of a program that is built: with its man pages, completions and units, and with a
# static program beside it, to be copied to servers.
# usage: scripts/package.sh PROGRAM STATIC   (as `make package` does; PROGRAM is built by the profile `dist`)
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
    "$cargo" install --locked --quiet cargo-deb --version "$version" --root "$tools" \
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
# cargo-deb takes the program from the folder of this profile, whatever PROGRAM is, and strips it: what is in the
# package is held against PROGRAM, symbols apart.
"$cargo" deb --package cli --profile dist --no-build --quiet >&2
deb=$(ls target/debian/*.deb)
dpkg-deb -x "$deb" "$made/unpacked"
bare() { strip --strip-all --remove-section=.comment --remove-section=.note -o "$2" "$1"; }
bare "$program" "$made/program"
bare "$made/unpacked/usr/bin/wiretax" "$made/packed"
if ! cmp -s "$made/program" "$made/packed"; then
    rm -f "$deb"
    echo "error: the package has another program than $program" >&2
    exit 1
fi
if ! cmp -s "$static" "$made/unpacked/usr/lib/wiretax/wiretax-static"; then
    rm -f "$deb"
    echo "error: the package has another static program than $static" >&2
    exit 1
fi
rm -rf "$made/unpacked" "$made/program" "$made/packed"
echo "$deb"
