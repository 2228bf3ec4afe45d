"""What the checker costs, beside the engine of PyTorch's CUDA sanitizer (CSAN).

Run with the Python of a project set up by `make`, best on a quiet machine:

    .venv/bin/python benches/checker.py

It builds `crates/streamsan-check/examples/engine_speed.rs`, which makes the programs (see
`crates/streamsan-check/benches/generated/mod.rs`): every operation has three accesses. For each number of streams the checker
takes some rounds over a log in memory. CSAN's `EventHandler` is given the first operations of the same log, the checker
the same ones again. Then logs that are made while they are read show the peak of memory. The tables are those of
`docs/benchmarks.md`. Times are those of a processor, not of the clock on the wall.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from torch.cuda._sanitizer import EventHandler

ROOT = Path(__file__).resolve().parent.parent


def build() -> Path:
    """Builds the program that is measured and says where it is."""
    command = [
        "cargo",
        "build",
        "--quiet",
        "--release",
        "--package",
        "streamsan-check",
        "--example",
        "engine_speed",
    ]
    subprocess.run(command, cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples" / "engine_speed"


def output(program: Path, *arguments: object) -> str:
    """What the program prints."""
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def pointers(text: str) -> set[int]:
    """The addresses of one kind of access.

    >>> sorted(pointers("8,4"))
    [4, 8]
    """
    return {int(pointer) for pointer in text.split(",")} if text else set()


def csan_calls(handler: EventHandler, events: str) -> list[tuple[Callable[..., object], tuple[object, ...]]]:
    """The calls that CSAN's hooks would make, with all arguments ready."""
    calls: list[tuple[Callable[..., object], tuple[object, ...]]] = []
    created: set[int] = set()

    def event(text: str) -> int:
        number = int(text)
        if number not in created:
            created.add(number)
            calls.append((handler._handle_event_creation, (number,)))
        return number

    for line in events.splitlines():
        kind, _, rest = line.partition(" ")
        words = rest.split(" ")
        if kind == "kernel":
            read, written = pointers(words[1]), pointers(words[2])
            aliases = {pointer: ["self"] for pointer in read | written}
            calls.append(
                (
                    handler._handle_kernel_launch,
                    (int(words[0]), read - written, written, written, "aten::add", aliases),
                )
            )
        elif kind == "alloc":
            calls.append((handler._handle_memory_allocation, (int(rest),)))
        elif kind == "free":
            calls.append((handler._handle_memory_deallocation, (int(rest),)))
        elif kind == "record":
            calls.append((handler._handle_event_record, (event(words[0]), int(words[1]))))
        elif kind == "wait":
            calls.append((handler._handle_event_wait, (event(words[0]), int(words[1]))))
        elif kind == "stream":
            # CSAN has the default stream from the beginning.
            if rest != "0":
                calls.append((handler._handle_stream_creation, (int(rest),)))
        elif kind == "synchronize":
            calls.append((handler._handle_event_synchronization, (event(rest),)))
        elif kind == "device":
            calls.append((handler._handle_device_synchronization, ()))
        else:
            raise ValueError(f"an event of the unknown kind `{kind}`: engine_speed.rs and this script differ")
    return calls


def csan_seconds(events: str) -> tuple[float, int]:
    """Seconds of CSAN's engine for the events, and how many errors it gave."""
    calls = csan_calls(EventHandler(), events)
    errors = 0
    start = time.process_time()
    for function, arguments in calls:
        found = function(*arguments)
        if found:
            assert isinstance(found, list)
            errors += len(found)
    return time.process_time() - start, errors


def main() -> None:
    """Measures and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, nargs="*", default=[2, 8, 32, 256, 2048])
    parser.add_argument("--operations", type=int, default=1_000_000, help="of a log in memory")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--csan-operations", type=int, default=100_000, help="0 leaves CSAN out")
    parser.add_argument(
        "--trace", type=Path, nargs="*", default=[], help="recorded, such as of benches/training.py"
    )
    parser.add_argument("--lengths", type=int, nargs="*", default=[10**6, 10**7, 10**8])
    options = parser.parse_args()
    program = build()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print(
        "| streams | operations a second, median (best) | the first ones | CSAN's engine on these | ratio |"
    )
    print("| --- | --- | --- | --- | --- |")
    for streams in options.streams:
        rounds = list(
            map(float, output(program, "speed", streams, options.operations, options.rounds).split())
        )
        median, best = options.operations / statistics.median(rounds), options.operations / min(rounds)
        row = f"| {streams:,} | {median / 1e6:.2f} M ({best / 1e6:.2f} M) "
        if count := options.csan_operations:
            ours = statistics.median(
                map(float, output(program, "speed", streams, count, options.rounds).split())
            )
            seconds, errors = csan_seconds(output(program, "events", streams, count))
            row += f"| {count / ours / 1e6:.2f} M | {count / seconds:,.0f} ({errors} errors) | {seconds / ours:.0f} "
        print(row + "|", flush=True)
    for trace in options.trace:
        operations, *seconds_each = map(float, output(program, "file", trace, options.rounds).split())
        median = operations / statistics.median(seconds_each) / 1e6
        print(f"\n{trace.name}: {operations:,.0f} operations, {median:.2f} M a second", flush=True)
    print(
        "\n| streams | operations | peak memory | seconds, making the log included |\n| --- | --- | --- | --- |"
    )
    for length in options.lengths:
        duration, peak = output(program, "memory", 8, length).split()
        print(f"| 8 | {length:,} | {int(peak) / 1024:.1f} MiB | {float(duration):.1f} |", flush=True)


if __name__ == "__main__":
    main()
