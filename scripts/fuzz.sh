#!/usr/bin/env bash
# Builds the fuzz targets of crates/fuzz-targets (libFuzzer, with the stable compiler), and runs each,
# or one, for some seconds, as many at once as there are processors.
# usage: scripts/fuzz.sh SECONDS [TARGET]
#
# Inputs found are kept in fuzz/corpus/, a failing one in fuzz/artifacts/.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET]}
only=${2:-}
triple=$(rustc -vV | sed -n 's/^host: //p')
out=$PWD/target/fuzz

targets=()
for target in $(sed -n 's/^    ("\([a-z0-9_]*\)", .*/\1/p' crates/fuzz-targets/src/lib.rs); do
    [ -n "$only" ] && [ "$only" != "$target" ] || targets+=("$target")
done
[ ${#targets[@]} -gt 0 ] || { echo "fuzz: no target is called $only" >&2; exit 2; }

# The same instrumentation that cargo-fuzz asks for, less the sanitiser: the code is safe Rust.
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions=on -Coverflow-checks=on"
cargo build --manifest-path fuzz/Cargo.toml --release --locked --target "$triple" \
    --target-dir "$out" --quiet

fuzz_one() {
    local target=$1 log=$out/$1.log runs seeds=()
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    [ -d "fuzz/seeds/$target" ] && seeds=("fuzz/seeds/$target")
    if ! WIRETAX_FUZZ_TARGET=$target "$out/$triple/release/fuzz" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 \
        -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$target/" \
        "fuzz/corpus/$target" "${seeds[@]}" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "fuzz: $target FAILED; again: scripts/fuzz.sh $seconds $target" >&2
        return 1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    printf 'fuzz: %-24s %10s inputs in %s s\n' "$target" "$runs" "$seconds"
}
export -f fuzz_one
export seconds triple out

# One that fails ends the script with an error, the others finish.
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'fuzz_one {}'
echo "fuzz: ${#targets[@]} passed, 0 failed"
