"""What recording costs: of an operator, of a training step, at start-up, in bytes of the trace.

    .venv/bin/python benches/recording.py
    python benches/recording.py --device cuda

The first is for a machine without a GPU. The second measures a step on one (`benches/steps.py`, which says what the
contenders are); it needs the installed package and a CUDA device, and no network.

Each figure of the first table is the least of many short rounds in one process, so that other work on the machine
shows only if it fills every round. The operators run on the virtual device, whose kernels do nothing: what is left is
the host's side of an operator.

- plain: without a mode.
- empty mode: below a dispatch mode in Python that does nothing but call the operator.
- streamsan on a GPU: below the mode that records a GPU.
- computing: as `streamsan run --device virtual` does it, with the arithmetic on the CPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steps import SIZES, measure

OPERATOR = """
import json, time
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode
from streamsan.torch.observe import ObserveMode

torch.set_num_threads(1)
x, y = torch.zeros(4, device="cuda"), torch.ones(4, device="cuda")
xs, ys = ([torch.zeros(4, device="cuda") for _ in range(80)] for _ in range(2))

class Empty(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

def in_place(count):
    for _ in range(count):
        x.add_(y)

def new(count):
    for _ in range(count):
        torch.add(x, y)

def lists(count):
    for _ in range(count):
        torch._foreach_add_(xs, ys)

def least(loop, count, depth=0, rounds=400):
    if depth > 0:
        return least(loop, count, depth - 1)
    best = 1.0
    for _ in range(rounds):
        start = time.perf_counter()
        loop(count)
        best = min(best, (time.perf_counter() - start) / count)
    return best * 1e6

def row():
    return [least(in_place, 200), least(in_place, 200, 20), least(new, 200), least(lists, 10)]

own = _pop_mode()
rows = {"plain": row()}
for name, mode in (("empty mode", Empty()), ("streamsan on a GPU", ObserveMode()), ("computing", own)):
    with mode:
        rows[name] = row()
_push_mode(own)
print(json.dumps(rows))
"""

SMALL = "import torch\nx = torch.ones(4, device='cuda')\nprint((x + 1).sum().item())\n"
IMPORT = "import torch\nprint(0)\n"

TRAINING = """
import torch
from streamsan import _core
torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(512, 64), torch.nn.GELU(), torch.nn.Linear(64, 10),
).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for step in range(STEPS):
    data = torch.randn(8, 3, 16, 16, device="cuda")
    optimizer.zero_grad()
    net(data).square().mean().backward()
    optimizer.step()
torch.cuda.synchronize()
print(_core.operations_recorded())
"""


class Folder:
    """Where programs and traces are."""

    def __init__(self, path: Path) -> None:
        """Takes a folder that exists."""
        self.path = path
        self.trace = path / "run.sstrace"
        self.tool = [sys.executable, "-m", "streamsan"]

    def timed(self, command: list[str]) -> tuple[str, float]:
        """Runs a command; returns its output and its wall time."""
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=self.path)
        return done.stdout, time.perf_counter() - start

    def record(self, source: str, *options: str) -> tuple[str, float]:
        """Runs a program under `streamsan run`."""
        script = self.path / "program.py"
        script.write_text(source)
        run = [*self.tool, "run", "--device", "virtual", "--force", *options, "-o", str(self.trace)]
        return self.timed([*run, str(script)])

    def plain(self, source: str) -> float:
        """Runs a program without streamsan; returns its wall time."""
        script = self.path / "plain.py"
        script.write_text(source)
        return self.timed([sys.executable, str(script)])[1]


def operator_cost(folder: Folder) -> None:
    """Prints the table of modes."""
    rows = json.loads(folder.record(OPERATOR, "--no-check")[0].splitlines()[-1])
    print("| us an operator | `add_` | `add_` below 20 calls | `add` | `_foreach_add_` of 80 |")
    print("| --- | --- | --- | --- | --- |")
    for name, figures in rows.items():
        print(f"| {name} | {' | '.join(f'{figure:.2f}' for figure in figures)} |")
    pairs = zip(rows["streamsan on a GPU"], rows["empty mode"], strict=True)
    ratios = " | ".join(f"{ours / empty:.2f} x" for ours, empty in pairs)
    print(f"| streamsan on a GPU to the empty mode | {ratios} |")


def start_up(folder: Folder) -> None:
    """Prints what a small program takes."""
    imported, watched, checked = [], [], []
    for _ in range(5):
        imported.append(folder.plain(IMPORT))
        watched.append(folder.record(SMALL)[1])
        checked.append(folder.timed([*folder.tool, "check", str(folder.trace)])[1])
    print("\n| start-up, wall | least | median |\n| --- | --- | --- |")
    for name, times in (
        ("python that imports torch", imported),
        ("`streamsan run` of one operator, check included", watched),
        ("`streamsan check` of its trace", checked),
    ):
        print(f"| {name} | {min(times):.2f} s | {statistics.median(times):.2f} s |")


def trace_size(folder: Folder) -> None:
    """Prints how much of a training run's trace an operation takes; the rest is interned once."""
    print(
        "\n| trace of a training run | operations | bytes | bytes an operation |\n| --- | --- | --- | --- |"
    )
    sizes = []
    for steps in (10, 200):
        operations = int(folder.record(TRAINING.replace("STEPS", str(steps)), "--no-check")[0])
        sizes.append((operations, folder.trace.stat().st_size))
        print(f"| {steps} steps | {operations:,} | {sizes[-1][1]:,} | {sizes[-1][1] / operations:.0f} |")
    (few, first), (many, last) = sizes
    print(f"| each further | {many - few:,} | {last - first:,} | {(last - first) / (many - few):.0f} |")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("virtual", "cuda"), default="virtual")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the step")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(Path(path))
        if options.device == "virtual":
            operator_cost(folder)
            start_up(folder)
            trace_size(folder)
        for size in SIZES if options.device == "cuda" else ("small",):
            measure(options.device, size, options.rounds, folder.path)


if __name__ == "__main__":
    main()
