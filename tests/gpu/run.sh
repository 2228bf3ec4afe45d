#!/usr/bin/env bash
# All that is tested on a GPU, one line each. Exits with 1 if something differs from what is expected.
#
# usage: tests/gpu/run.sh WHEEL [--corpus DIR] [--logs DIR] [--jobs N] [--steps NAME,...] [--soak SECONDS]
#
# WHEEL is a wheel of streamsan; it is installed into a folder of its own, beside the torch of `python3` (or $PYTHON).
# DIR has scripts with their verdicts and a score.py, which is run with the command, the folder and `--device cuda`.
# --soak runs tests/gpu/soak.py plainly and recorded for so long, as a last step called soak.
set -uo pipefail

usage() { sed -n '4,8s/^# \{0,1\}//p' "$0"; exit 2; }

wheel= corpus= logs= jobs=8 steps= soak=
while [ $# -gt 0 ]; do
  case $1 in
    --corpus) corpus=$(realpath "$2"); shift 2 ;;
    --logs) mkdir -p "$2"; logs=$(realpath "$2"); shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    --steps) steps=,$2,; shift 2 ;;
    --soak) soak=$2; shift 2 ;;
    -*) usage ;;
    *) [ -z "$wheel" ] || usage; wheel=$(realpath "$1"); shift ;;
  esac
done
[ -f "$wheel" ] || usage

python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
logs=${logs:-$scratch}
cd "$(dirname "$0")/../.."
"$python" -m pip install -q --disable-pip-version-check --no-deps --no-compile --target "$scratch/site" "$wheel" || exit 1
export PYTHONPATH=$scratch/site${PYTHONPATH:+:$PYTHONPATH} STREAMSAN_TEST_DEVICE=cuda
printf '#!/bin/sh\nexec "%s" -m streamsan "$@"\n' "$python" >"$scratch/streamsan"
chmod +x "$scratch/streamsan"

failed=0
# Says what a step came to: its name, the last line of what it wrote, its time.
step() {
  local name=$1 start=$SECONDS
  shift
  case ${steps:-,$name,} in *,$name,*) ;; *) return ;; esac
  if "$@" >"$logs/$name.log" 2>&1; then mark=ok; else mark=FAILED failed=1; fi
  printf '%-12s %-7s %4d s  %s\n' "$name" "$mark" $((SECONDS - start)) "$(tail -n 1 "$logs/$name.log")"
}
parallel=
"$python" -c 'import xdist' 2>/dev/null && parallel="-n $jobs"
# shellcheck disable=SC2086
tests() { "$python" -m pytest -q -p no:cacheprovider $parallel "$@"; }

"$scratch/streamsan" doctor >"$logs/doctor.log" 2>&1
grep -E '^  (torch|GPU) ' "$logs/doctor.log"
if grep -q '^  GPU  *none' "$logs/doctor.log"; then echo "there is no GPU here: nothing was tested"; exit 1; fi

step scripts tests tests/torch/test_scripts.py tests/torch/test_triton.py
step table tests tests/torch/test_csan_table.py
step examples tests tests/torch/test_examples.py
step advice tests tests/torch/test_advice.py
step events tests tests/torch/test_feed.py tests/torch/test_host_memory.py tests/torch/test_streams.py
step programs tests tests/torch/test_innocent.py tests/torch/test_training.py
step gpu tests tests/gpu
if [ -n "$corpus" ]; then
  step corpus "$python" "$corpus/score.py" "$scratch/streamsan" "$corpus" --device cuda --jobs "$jobs"
else
  echo "corpus       skipped: no --corpus DIR"
fi
[ -z "$soak" ] || step soak "$python" tests/gpu/soak_compare.py --seconds "$soak"
exit $failed
