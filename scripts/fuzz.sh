#!/usr/bin/env bash
# Builds every fuzz target (libFuzzer, with the stable compiler) and runs each for some seconds.
# usage: scripts/fuzz.sh SECONDS [TARGET]
#
# Inputs found are kept in fuzz/corpus/, a failing one in fuzz/artifacts/.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET]}
only=${2:-}
triple=$(rustc -vV | sed -n 's/^host: //p')
out=$PWD/target/fuzz

# The same instrumentation that cargo-fuzz asks for, less the sanitiser: the code is safe Rust.
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions=on -Coverflow-checks=on"
cargo build --manifest-path fuzz/Cargo.toml --release --locked --target "$triple" \
    --target-dir "$out" --quiet

passed=0
for source in fuzz/fuzz_targets/*.rs; do
    target=$(basename "$source" .rs)
    [ -z "$only" ] || [ "$only" = "$target" ] || continue
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    seeds=()
    [ -d "fuzz/seeds/$target" ] && seeds=("fuzz/seeds/$target")
    log=$out/$target.log
    if ! "$out/$triple/release/$target" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 \
        -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$target/" \
        "fuzz/corpus/$target" "${seeds[@]}" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "fuzz: $target FAILED; again: scripts/fuzz.sh $seconds $target" >&2
        exit 1
    fi
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    printf 'fuzz: %-20s %10s inputs in %s s\n' "$target" "$runs" "$seconds"
    passed=$((passed + 1))
done
echo "fuzz: $passed passed, 0 failed"
