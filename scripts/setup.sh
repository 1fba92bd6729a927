#!/usr/bin/env bash
# Sees to it that the machine has what the build (run), the tests (test), the drivers or the guest
# need.
# usage: scripts/setup.sh run|test|drivers|guest
#
# Debian and Ubuntu: installs what is missing by apt, as root or by sudo without a password.
# Elsewhere, or where it may not: says what is missing and stops.
set -euo pipefail

what=${1:?usage: scripts/setup.sh run|test|drivers|guest}

# command:Debian package, or folder:package. The C compilers build OpenSSL and AWS-LC; Perl configures
# OpenSSL; four drivers are built on the system's libraries.
needs="cc:gcc c++:g++ make:make perl:perl git:git"
[ "$what" = drivers ] && needs="$needs cmake:cmake curl:curl autoreconf:autoconf automake:automake libtoolize:libtool valgrind:valgrind /usr/include/botan-2:libbotan-2-dev /usr/include/mbedtls:libmbedtls-dev /usr/include/gnutls:libgnutls28-dev /usr/include/nss:libnss3-dev"
[ "$what" != guest ] || needs="$needs xz:xz-utils"
[ "$what" != test ] || needs="$needs tshark:tshark openssl:openssl curl:curl ip:iproute2 setpriv:util-linux nft:nftables nginx:nginx nghttp:nghttp2-client nghttpd:nghttp2-server gtlsclient:ngtcp2-client chromium-headless-shell:chromium-headless-shell valgrind:valgrind"

# Programs of the administrator are not in every user's PATH.
PATH=$PATH:/usr/sbin:/sbin

missing_commands() {
    for need in $needs; do
        command -v "${need%%:*}" >/dev/null 2>&1 || [ -d "${need%%:*}" ] || printf '%s ' "${need##*:}"
    done
}

# The least version of Rust that builds this, as Cargo.toml says it, and the one that rust-toolchain.toml pins for
# rustup. What is not installed yet is not fetched by looking.
here=$(cd "$(dirname "$0")/.." && pwd)
least=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$here/Cargo.toml" | head -n 1)
pinned=$(sed -n 's/^channel = "\(.*\)"$/\1/p' "$here/rust-toolchain.toml" | head -n 1)
rust() { { cd "$here" && RUSTUP_AUTO_INSTALL=0 cargo --version 2>/dev/null || true; } | sed -n 's/^cargo \([0-9.]*\).*/\1/p'; }
rust_will_do() {
    local found
    found=$(rust)
    [ -n "$found" ] && [ "$(printf '%s\n%s\n' "$least" "$found" | sort -V | head -n 1)" = "$least" ]
}

no_rust() {
    local found
    found=$(rust)
    echo "setup: Rust $least or later is needed; this machine has ${found:-none}" >&2
    if command -v rustup >/dev/null 2>&1; then
        echo "hint: \`rustup toolchain install $pinned\` installs the one that this is tested with, then run this again" >&2
    else
        echo "hint: install it as https://rustup.rs says, then run this again:" >&2
        echo "      curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh" >&2
    fi
    exit 1
}
# ask QUESTION: yes where nobody can be asked, as in a script.
ask() {
    local answer
    [ -t 0 ] && [ -t 2 ] || return 0
    read -r -p "setup: $1 [Y/n] " answer
    [[ ! $answer =~ ^[nN] ]]
}
install_toolchain() {
    echo "setup: installing Rust $pinned by rustup, into ~/.rustup" >&2
    rustup toolchain install "$pinned" --profile minimal --component clippy,rustfmt >/dev/null 2>&1 || no_rust
    rust_will_do || no_rust
}
# Debian 13 and Ubuntu 24.04 have a package rustup.
with_rustup=
if ! rust_will_do; then
    command -v rustup >/dev/null 2>&1 || apt-cache show rustup >/dev/null 2>&1 || no_rust
    ask "install Rust $pinned by rustup, into ~/.rustup (some 700 MB)?" || no_rust
    if command -v rustup >/dev/null 2>&1; then
        install_toolchain
    else
        with_rustup=yes
        needs="$needs rustup:rustup"
    fi
fi

missing=$(missing_commands)
# Guests are fetched by the package lists, which may not be there yet.
lists=yes
[ "$what" != guest ] || apt-cache show linux-image-cloud-amd64 >/dev/null 2>&1 || lists=
[ -z "$missing" ] && [ -n "$lists" ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        as_root=(sudo -n)
    else
        may_not="this user may not install packages"
    fi
fi
command -v apt-get >/dev/null 2>&1 || may_not="this system has no apt-get"

if [ -n "${may_not:-}" ]; then
    echo "setup: missing: ${missing:-the package lists (apt-get update)}" >&2
    echo "hint: $may_not; install these packages (names as in Debian), then run this again" >&2
    exit 1
fi

echo "setup: installing ${missing:-the package lists}" >&2
# A server that is installed for the tests is not to be started (invoke-rc.d(8), systemctl(1)).
quietly=(env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 SYSTEMD_OFFLINE=1)
"${as_root[@]}" apt-get update -qq
[ -n "$missing" ] || exit 0
# shellcheck disable=SC2086 # a list of packages
"${as_root[@]}" "${quietly[@]}" apt-get install -y -qq --no-install-recommends $missing >/dev/null

[ -z "$with_rustup" ] || install_toolchain

missing=$(missing_commands)
if [ -n "$missing" ]; then
    echo "setup: still missing after the installation: $missing" >&2
    exit 1
fi
