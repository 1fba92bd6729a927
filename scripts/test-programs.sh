#!/usr/bin/env bash
# Builds the workspace's test programs and prints a line for each: `timed` if it uses the lab or a clock,
# `guest` if it needs a guest, else `pure`; its crate, kind (lib, bin or test), name, package folder and path.
# usage: scripts/test-programs.sh
set -euo pipefail
cd "$(dirname "$0")/.."

"${CARGO:-cargo}" test --workspace --locked --no-run --message-format=json-render-diagnostics |
    sed -n 's/.*"package_id":"[^"#]*#\([^"]*\)","manifest_path":"\([^"]*\)\/Cargo\.toml".*"target":{"kind":\["\([a-z]*\)"\].*"name":"\([a-z0-9_-]*\)".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*/\1 \2 \3 \4 \5/p' |
    while read -r id folder kind name path; do
        # A package that is called as its folder is has its version only.
        crate=${id%@*}
        [ "$crate" != "$id" ] || crate=${folder##*/}
        case $crate:$kind:$name in
            *:test:guest) lane=guest ;;
            *:test:lab | *:test:hosts | host:test:places | cli:test:* | conn:test:it | spdy:test:judges | load:* | \
                gateway:lib:* | pump:* | metrics:lib:*) lane=timed ;;
            *) lane=pure ;;
        esac
        echo "$lane $crate $kind $name $folder $path"
    done
