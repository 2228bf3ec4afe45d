#!/usr/bin/env bash
# Fuzzes targets side by side for a time, and keeps what is new.
#
#   fuzz/run.sh SECONDS JOBS FOLDER PROGRAM [TARGET…]
#
# PROGRAM is what fuzz/build.sh makes; without targets, all of them run. JOBS processes share the targets evenly, each
# target for SECONDS with at least as many jobs as targets, else for its part of them. FOLDER gets, for each target,
#   new/TARGET      the inputs that reach something which fuzz/corpus/TARGET does not, as few as do it
#   crashes/        inputs that broke a promise (a process goes on after one)
#   logs/           what libFuzzer said
#   table.md        executions, processor time, greatest memory and crashes, also printed
# and is read again by the next run. The table is there before the inputs are thinned out, which takes minutes more after
# a long run: STREAMSAN_FUZZ_KEEP=0 leaves that out. The status is 1 if there was a crash.
set -euo pipefail
usage="usage: fuzz/run.sh SECONDS JOBS FOLDER PROGRAM [TARGET…]"
seconds=${1:?"$usage"} jobs=${2:?"$usage"} folder=${3:?"$usage"} program=${4:?"$usage"}
shift 4
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$program")
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    for path in "$here"/corpus/*/; do targets+=("$(basename "$path")"); done
fi
count=${#targets[@]}
mkdir -p "$folder"/{new,crashes,logs,work}
folder=$(realpath "$folder")
rm -f "$folder"/logs/*
TIMEFORMAT="processor %U"

# One target in one process, anew after each crash, until its time is over.
fuzz() {
    local target=$1 job=$2 duration=$3 end left dictionary=()
    local dictionaries="$here/dictionaries"
    end=$((SECONDS + duration))
    case $target in
    program_text | markdown) dictionary=("-dict=$dictionaries/programs.dict") ;;
    *) [ ! -f "$dictionaries/$target.dict" ] || dictionary=("-dict=$dictionaries/$target.dict") ;;
    esac
    while left=$((end - SECONDS)); [ $left -gt 1 ]; do
        { time STREAMSAN_FUZZ_TARGET=$target "$program" "${dictionary[@]}" -rss_limit_mb=2048 -timeout=120 \
            -max_len=20000 -print_final_stats=1 -verbosity=1 -max_total_time=$left \
            -artifact_prefix="$folder/crashes/$target-" \
            "$folder/work/$target" "$folder/new/$target" "$here/corpus/$target"; } \
            >>"$folder/logs/$target-$job" 2>&1 && break
    done
    return 0
}

for target in "${targets[@]}"; do mkdir -p "$folder/new/$target" "$folder/work/$target"; done
pids=()
for ((job = 0; job < jobs; job++)); do
    (
        if [ "$jobs" -ge "$count" ]; then
            fuzz "${targets[$((job % count))]}" "$job" "$seconds"
        else
            share=$((seconds / ((count + jobs - 1) / jobs)))
            for ((index = job; index < count; index += jobs)); do fuzz "${targets[$index]}" "$job" "$share"; done
        fi
    ) &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done

sum() { awk -v key="$1" '$1 == key { total += $2 } END { printf "%d", total }' "${@:2}"; }
greatest() { awk -v key="$1" '$1 == key && $2 > most { most = $2 } END { printf "%d", most }' "${@:2}"; }
{
    echo "| target | executions | processor seconds | greatest memory, MiB | new inputs | crashes |"
    echo "| --- | --- | --- | --- | --- | --- |"
    for target in "${targets[@]}"; do
        logs=()
        for path in "$folder"/logs/"$target"-*; do [ "$path" = "$folder/logs/$target-merge" ] || logs+=("$path"); done
        crashes=$(find "$folder/crashes" -name "$target-*" | wc -l)
        echo "| $target | $(sum stat::number_of_executed_units: "${logs[@]}") | $(sum processor "${logs[@]}")" \
            "| $(greatest stat::peak_rss_mb: "${logs[@]}") | $(find "$folder/work/$target" "$folder/new/$target" -type f | wc -l) | $crashes |"
    done
} | tee "$folder/table.md"

# Of what was found, only what adds something is kept.
keep() {
    local target=$1 kept="$folder/work/$1.kept"
    rm -rf "$kept" && mkdir -p "$kept"
    cp "$here/corpus/$target"/* "$kept"/
    STREAMSAN_FUZZ_TARGET=$target timeout 600 "$program" -merge=1 -rss_limit_mb=2048 -timeout=120 -artifact_prefix="$folder/crashes/$target-" "$kept" \
        "$folder/new/$target" "$folder/work/$target" >"$folder/logs/$target-merge" 2>&1 || return 0
    for path in "$here/corpus/$target"/*; do rm -f "$kept/$(basename "$path")"; done
    rm -rf "$folder/new/$target" "$folder/work/$target" && mv "$kept" "$folder/new/$target"
}
[ "${STREAMSAN_FUZZ_KEEP:-1}" = 1 ] || targets=()
pids=()
for target in "${targets[@]}"; do
    keep "$target" &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
[ -z "$(ls -A "$folder/crashes")" ]
