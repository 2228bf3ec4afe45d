"""Memory of a watched program over a million recorded operations of an innocent training run.

    .venv/bin/python benches/memory.py [--operations 1000000] [--live] [--limit MIB]

The program trains a small network with a prefetch stream, events and pinned batches. It says at ten points how much memory
it holds: its own (anonymous), and mapped files, among them the parts of the trace that are being written. The
same program is then run without streamsan on the CPU, which shows what torch itself keeps. The status is 1 if own memory
grew by more than the limit between the second point and the last, or if the run has a finding.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = """
import json, sys, time
import torch
device, total = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
torch.manual_seed(0)
watched = device == "cuda"
if watched:
    from streamsan import _core
    count = _core.operations_recorded
    side = torch.cuda.Stream()
net = torch.nn.Sequential(
    torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 4)
).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
batches = [torch.randn(16, 32).pin_memory() if watched else torch.randn(16, 32) for _ in range(4)]

def load(step):
    if not watched:
        return batches[step % 4].clone()
    with torch.cuda.stream(side):
        return batches[step % 4].to(device, non_blocking=True)

def train(step, data):
    if watched:
        torch.cuda.current_stream().wait_stream(side)
        data.record_stream(torch.cuda.current_stream())
    following = load(step + 1)
    optimizer.zero_grad()
    loss = net(data).square().mean()
    loss.backward()
    optimizer.step()
    return following, loss.detach()

def memory():
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    kib = {name: int(lines[name].split()[0]) for name in ("RssAnon", "RssFile", "RssShmem")}
    return kib["RssAnon"] / 1024, (kib["RssFile"] + kib["RssShmem"]) / 1024

data, step, start = load(0), 0, time.perf_counter()
if watched:
    done = count
else:
    # As many steps as the watched run makes.
    done = lambda: step * int(sys.argv[3]) / 1000
for point in range(11):
    while done() < total * point / 10:
        data, loss = train(step, data)
        step += 1
    print(json.dumps([done(), step, time.perf_counter() - start, *memory()]), flush=True)
if watched:
    torch.cuda.synchronize()
"""

Point = tuple[float, int, float, float, float]


def run(command: list[str], folder: str) -> tuple[list[Point], str]:
    """Runs the program; returns its points and what was said beside them."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode not in (0, 66):
        raise SystemExit(done.stdout + done.stderr)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()], done.stderr


def show(title: str, points: list[Point]) -> None:
    """Prints a table."""
    print(
        f"\n{title}\n\n| operations | steps | seconds | own memory | mapped files |\n| --- | --- | --- | --- | --- |"
    )
    for operations, step, seconds, own, mapped in points:
        print(f"| {operations:,.0f} | {step:,} | {seconds:.1f} | {own:.1f} MiB | {mapped:.1f} MiB |")


def main() -> int:
    """Measures, prints, and says whether memory stayed flat."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--live", action="store_true", help="check while the program runs")
    parser.add_argument(
        "--limit", type=float, default=4.0, help="growth of own memory that is allowed, in MiB"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        script, trace = Path(folder, "train.py"), Path(folder, "run.sstrace")
        script.write_text(PROGRAM)
        tool = [str(Path(sys.prefix, "bin", "streamsan")), "run", "--device", "virtual", "-o", str(trace)]
        if asked.live:
            tool.append("--live")
        begin = time.perf_counter()
        watched, said = run([*tool, str(script), "cuda", str(asked.operations)], folder)
        wall, size = time.perf_counter() - begin, trace.stat().st_size
        operations, steps = watched[-1][0], watched[-1][1]
        show("Watched", watched)
        rate = str(round(operations / steps * 1000))
        plain, _ = run([sys.executable, str(script), "cpu", str(asked.operations), rate], folder)
        show("Plain, on the CPU", plain)
    growth, own = watched[-1][3] - watched[1][3], plain[-1][3] - plain[1][3]
    clean = "No hazards" in said
    print(
        f"\nFrom the second point to the last, own memory grew by {growth:.2f} MiB (plain: {own:.2f} MiB); trace {size / operations:.0f} "
        f"bytes an operation; all with the check {wall:.1f} s; {'no finding' if clean else 'FINDINGS'}."
    )
    if not clean:
        print(said)
    return int(growth > asked.limit or not clean)


if __name__ == "__main__":
    sys.exit(main())
