#!/usr/bin/env bash
# Builds the program with nothing to load at run time, to be copied to a server that has no toolchain, and a C
# library of its own: `probe` and `observe` work there from that file alone. Prints where it is.
# usage: scripts/static.sh [FOLDER]      target/static if not given: a release build of its own
set -euo pipefail
cd "$(dirname "$0")/.."

out=${1:-target/static}
triple=$(rustc -vV | sed -n 's/^host: //p')
case $triple in
*-linux-gnu) ;;
*) echo "error: a static build is made for Linux with glibc, not for $triple" >&2; exit 3 ;;
esac
# With --target the flag is for the program alone, not for what runs while it is built.
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" "${CARGO:-cargo}" build --release --locked -p cli \
    --target "$triple" --target-dir "$out" >&2
program=$out/$triple/release/wiretax
if LC_ALL=C readelf -d "$program" | grep -q '(NEEDED)'; then
    echo "error: $program loads libraries all the same" >&2
    exit 1
fi
strip -o "$out/wiretax" "$program"
echo "$out/wiretax"
