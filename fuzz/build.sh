#!/usr/bin/env bash
# Builds all fuzz targets as one program that runs without Rust, as `cargo fuzz build -s none` does it.
#
#   fuzz/build.sh PROGRAM
#
# Needs nightly Rust and a C++ compiler. The program needs libstdc++ where it runs.
set -euo pipefail
program=${1:?"usage: fuzz/build.sh PROGRAM"}
program=$(realpath -m "$program")
cd "$(dirname "$0")"
flags=(-Cpasses=sancov-module --cfg fuzzing)
for option in level=4 inline-8bit-counters pc-table trace-compares; do
    flags+=("-Cllvm-args=-sanitizer-coverage-$option")
done
host=$(rustc -vV | sed -n 's/^host: //p')
# With a target named, the flags are not for build scripts.
RUSTFLAGS="${flags[*]}" cargo +nightly build --quiet --release --bin any --target "$host"
folder=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
mkdir -p "$(dirname "$program")"
strip -o "$program" "$folder/$host/release/any"
echo "$program: $(stat -c %s "$program") bytes"
