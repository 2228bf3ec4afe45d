"""Runs `soak.py` plainly and under the recorder, and says what the recorder adds.

    python tests/gpu/soak_compare.py --seconds 480

With two GPUs the two runs go side by side, one on each. With one they go one after the other: the recorded one for
half of the time, then the plain one for as many turns. Growth is what the recorded run grew by more than the plain one
from the third turn to the last one that both did: torch's allocator keeps memory for each of the streams that torch
hands out in turn, so that any program grows until all were used.

The last line is one of JSON. It exits with 1 if a run failed, losses differ, events were lost, something was found, or memory
of the recorded run grew more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STREAMSAN = [sys.executable, "-m", "streamsan"]
# What torch has given out is the program's alone, so nothing may be added to it. What it keeps, and what the
# host's allocator keeps, depends on how far the host runs ahead.
MOST_GROWTH = {"own": 64 << 20, "kept": 64 << 20, "given": 8 << 20}
WORDS = {"own": "own memory", "kept": "device memory that torch keeps", "given": "device memory in use"}
# Losses of one program differ by rounding where a kernel adds in any order, and more with each step.
FIRST_LOSS, ANY_LOSS = 1e-4, 1e-2
SHOWN = 8

Row = dict[str, Any]


class Run:
    """One run of the program."""

    def __init__(self, command: list[str], gpu: str | None) -> None:
        """Starts it, on one GPU."""
        environment = dict(os.environ) if gpu is None else {**os.environ, "CUDA_VISIBLE_DEVICES": gpu}
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def stop(self) -> None:
        """Ends it, if it has not ended."""
        self._process.kill()

    def finish(self, seconds: float) -> Row:
        """Waits for it and returns what it printed.

        Raises:
            SystemExit: if it failed, or took longer than that.
        """
        try:
            out, errors = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            sys.exit(f"a run did not end within {seconds:.0f} s")
        if self._process.returncode != 0:
            sys.exit(f"a run ended with status {self._process.returncode}:\n{errors[-4000:]}")
        row: Row = json.loads(out.splitlines()[-1])
        return row


def gpus() -> list[str]:
    """Names of the GPUs that a program would find, as CUDA_VISIBLE_DEVICES takes them."""
    import torch

    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",")[:count] if named else [str(index) for index in range(count)]


def run_both(arguments: argparse.Namespace, trace: Path) -> tuple[Row, Row]:
    """Returns the rows of the plain and of the recorded run."""
    device = ["--device", arguments.device]
    recorded = [*STREAMSAN, "run", *device, "--no-check", "--force", "-o", str(trace)]
    plain = [sys.executable]
    if arguments.device == "virtual":
        # Nothing runs there without the recorder: this tries the comparison only.
        plain = [*recorded[:-1], str(trace.with_name("other.sstrace"))]
    names = gpus() if arguments.device == "cuda" else []
    program = [str(HERE / "soak.py"), "--steps", str(arguments.steps)]
    turns = [] if arguments.turns is None else ["--turns", str(arguments.turns)]
    longest = 2 * arguments.seconds + 120
    if len(names) >= 2:
        print(f"side by side: plainly on GPU {names[0]}, recorded on GPU {names[1]}")
        limits = ["--seconds", str(arguments.seconds), *turns]
        both = [Run([*plain, *program, *limits], names[0]), Run([*recorded, *program, *limits], names[1])]
        try:
            first, second = (run.finish(longest) for run in both)
        finally:
            for run in both:
                run.stop()
        return first, second
    print("one after the other: recorded for half of the time, then plainly for as many turns")
    limits = ["--seconds", str(arguments.seconds / 2), *turns]
    second = run_alone([*recorded, *program, *limits], longest)
    limits = ["--seconds", str(arguments.seconds), "--turns", str(len(second["turns"]))]
    return run_alone([*plain, *program, *limits], longest), second


def run_alone(command: list[str], longest: float) -> Row:
    """Runs it to its end."""
    run = Run(command, None)
    try:
        return run.finish(longest)
    finally:
        run.stop()


def check(trace: Path) -> Row:
    """Returns what the check of the trace says."""
    start = time.monotonic()
    done = subprocess.run(
        [*STREAMSAN, "check", "--output-format", "json", str(trace)], stdout=subprocess.PIPE, text=True
    )
    report = json.loads(done.stdout)
    gaps = report["gaps"]
    return {
        "operations": report["coverage"]["operations"],
        "lost": sum(gap["count"] for gap in gaps if gap["reason"] in ("lost", "damaged")),
        "gaps": sum(gap["count"] for gap in gaps),
        "findings": [finding["rule"] for finding in report["findings"]],
        "trace_bytes": trace.stat().st_size,
        "check_seconds": round(time.monotonic() - start, 1),
    }


def points(count: int) -> list[int]:
    """Some turns from the first to the last."""
    return sorted({round(index * (count - 1) / (SHOWN - 1)) for index in range(SHOWN)})


def show(plain: Row, recorded: Row, count: int) -> None:
    """Prints both runs beside each other."""
    chosen = points(count)
    print(f"{'turn':<46}", *(f"{index + 1:>9}" for index in chosen))
    for key, words in {"loss": "loss", **WORDS}.items():
        for name, row in (("plain", plain), ("recorded", recorded)):
            values = [row["turns"][index][key] for index in chosen]
            shown = [f"{value:9.6f}" if key == "loss" else f"{value >> 20:9}" for value in values]
            unit = "" if key == "loss" else ", MiB"
            print(f"{words + unit:<37} {name:<8}", *shown)


def compare(plain: Row, recorded: Row, seen: Row) -> tuple[Row, list[str]]:
    """Returns the figures of the last line, and what is not as it should be."""
    count = min(len(plain["turns"]), len(recorded["turns"]))
    wrong = []
    # The first turns fill caches.
    base = min(2, count - 1)
    more = {}
    for key, most in MOST_GROWTH.items():
        grown = [row["turns"][count - 1][key] - row["turns"][base][key] for row in (plain, recorded)]
        more[key] = grown[1] - grown[0]
        if more[key] > most:
            wrong.append(f"{WORDS[key]} grew by {more[key] >> 20} MiB more than without the recorder")
    pairs = [(plain["turns"][index]["loss"], recorded["turns"][index]["loss"]) for index in range(count)]
    apart = [abs(one - other) / abs(one) for one, other in pairs]
    if apart[0] > FIRST_LOSS or max(apart) > ANY_LOSS:
        wrong.append(f"losses differ: by {apart[0]:.1e} in the first turn, by {max(apart):.1e} at most")
    if seen["lost"]:
        wrong.append(f"{seen['lost']} events were lost")
    if seen["findings"]:
        wrong.append(f"findings: {', '.join(sorted(set(seen['findings'])))}")
    if seen["operations"] == 0:
        wrong.append("no operation was recorded")

    def of(row: Row) -> Row:
        ends = (row["turns"][base], row["turns"][-1])
        return {
            "seconds": row["seconds"],
            "turns": len(row["turns"]),
            "steps": row["steps"],
            **{f"{key}_mib": [end[key] >> 20 for end in ends] for key in MOST_GROWTH},
        }

    figures = {
        "ok": not wrong,
        "compared_turns": count,
        "equal_losses": sum(one == other for one, other in pairs),
        "added_growth_mib": {key: round(value / (1 << 20), 1) for key, value in more.items()},
        "plain": of(plain),
        "recorded": {**of(recorded), **seen},
    }
    return figures, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=480.0, help="time for both runs")
    parser.add_argument("--turns", type=int, help="at most so many turns in each run")
    parser.add_argument("--steps", type=int, default=40, help="training steps of a turn")
    parser.add_argument("--device", choices=["cuda", "virtual"], default="cuda")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave the trace in this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        trace = folder / "soak.sstrace"
        plain, recorded = run_both(arguments, trace)
        seen = check(trace)
    show(plain, recorded, min(len(plain["turns"]), len(recorded["turns"])))
    figures, wrong = compare(plain, recorded, seen)
    for sentence in wrong:
        print(f"differs: {sentence}")
    print(json.dumps(figures))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
