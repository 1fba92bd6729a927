#!/bin/sh
# Installs the program, its man pages and its shell completions below a prefix. Needs root only
# where the prefix does.
set -eu

if [ $# -ne 2 ]; then
    echo "usage: $0 PROGRAM PREFIX   (as in: $0 target/release/wiretax ~/.local)" >&2
    exit 2
fi
program=$1
prefix=$2
if [ ! -x "$program" ]; then
    echo "error: there is no program $program; build it with \`make build\`" >&2
    exit 1
fi
# Asked for in one go, before anything is written.
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$program" man "$made/man"
for shell in bash zsh fish; do
    "$program" completions "$shell" >"$made/$shell"
done

put() { # MODE FILE PLACE
    if ! install -D -m "$1" "$2" "$prefix/$3"; then
        echo "error: $prefix/$3 cannot be written; choose another PREFIX, such as ~/.local" >&2
        exit 1
    fi
    echo "$prefix/$3"
}

put 755 "$program" bin/wiretax
for page in "$made"/man/*.1; do
    put 644 "$page" "share/man/man1/$(basename "$page")"
done
put 644 "$made/bash" share/bash-completion/completions/wiretax
put 644 "$made/zsh" share/zsh/site-functions/_wiretax
put 644 "$made/fish" share/fish/vendor_completions.d/wiretax.fish

case ":$PATH:" in
*":$prefix/bin:"*) ;;
*) echo "note: $prefix/bin is not in PATH" >&2 ;;
esac
