"""What recording adds to an operator, apart from its arithmetic; start-up; bytes of the trace.

    .venv/bin/python benches/recording.py

Each figure is the least of many short rounds in one process, so that other work on the machine shows only if it fills every
round. The operator is `add_` on four elements, called directly and below twenty calls of Python functions.

- plain: on the CPU.
- empty mode: on the CPU below a dispatch mode that does nothing but call the operator.
- answer mode: below a dispatch mode that answers without calling anything. What a mode costs by itself.
- record mode: a dispatch mode that records the operator on the virtual device and answers without computing it. Less the
  answer mode: what recording adds to an operator on any device.
- virtual device: as `streamsan run` does it, with the arithmetic on the CPU.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OPERATOR = """
import json, sys, time
import torch
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode
from streamsan import _core
from streamsan.torch.plans import OPERATORS
from streamsan.torch.wrappers import Handling, handling

torch.set_num_threads(1)
x, y = torch.zeros(4, device="cuda"), torch.ones(4, device="cuda")
a, b = torch.zeros(4), torch.ones(4)

class Empty(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))

class Answer(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return args[0]

class Record(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.recorder = _core.ThreadRecorder()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if handling(types) is not Handling.OURS:
            return NotImplemented
        kwargs = kwargs or {}
        operator = OPERATORS[func]
        recorder = self.recorder
        device = recorder.begin(operator.plan, args, kwargs)
        try:
            out = args[0]
            recorder.record(operator.plan, device, args, kwargs, out, 0)
            return out
        finally:
            recorder.leave()

def device_loop(count):
    for _ in range(count):
        x.add_(y)

def host_loop(count):
    for _ in range(count):
        a.add_(b)

def least(loop, depth, count=200, rounds=400):
    if depth > 0:
        return least(loop, depth - 1)
    best = 1.0
    for _ in range(rounds):
        start = time.perf_counter()
        loop(count)
        best = min(best, (time.perf_counter() - start) / count)
    return best * 1e6

def all_figures(depth):
    figures = {"virtual device": least(device_loop, depth)}
    own = _pop_mode()
    figures["plain"] = least(host_loop, depth)
    for name, mode, loop in (
        ("empty mode", Empty(), host_loop), ("answer mode", Answer(), device_loop), ("record mode", Record(), device_loop)
    ):
        with mode:
            figures[name] = least(loop, depth)
    _push_mode(own)
    return figures

print(json.dumps({str(depth): all_figures(depth) for depth in (0, 20)}))
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
        self.tool = str(Path(sys.prefix, "bin", "streamsan"))

    def timed(self, command: list[str]) -> tuple[str, float]:
        """Runs a command; returns its output and its wall time."""
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=self.path)
        return done.stdout, time.perf_counter() - start

    def record(self, source: str, *options: str) -> tuple[str, float]:
        """Runs a program under `streamsan run`."""
        script = self.path / "program.py"
        script.write_text(source)
        run = [self.tool, "run", "--device", "virtual", "--force", *options, "-o", str(self.trace)]
        return self.timed([*run, str(script)])

    def plain(self, source: str) -> float:
        """Runs a program without streamsan; returns its wall time."""
        script = self.path / "plain.py"
        script.write_text(source)
        return self.timed([sys.executable, str(script)])[1]


def operator_cost(folder: Folder) -> None:
    """Prints the table of modes."""
    figures = json.loads(folder.record(OPERATOR, "--no-check")[0].splitlines()[-1])
    print("| us an operator | called directly | below 20 calls |\n| --- | --- | --- |")
    direct, deep = figures["0"], figures["20"]
    for name in ("plain", "empty mode", "answer mode", "record mode", "virtual device"):
        print(f"| {name} | {direct[name]:.2f} | {deep[name]:.2f} |")
    added = [of["record mode"] - of["answer mode"] for of in (direct, deep)]
    print(f"| added by recording | {added[0]:.2f} | {added[1]:.2f} |")
    ratios = [1 + more / of["empty mode"] for more, of in zip(added, (direct, deep), strict=True)]
    print(f"| ... as a part of the empty mode | {ratios[0]:.2f} x | {ratios[1]:.2f} x |")
    layer = [of["virtual device"] - of["empty mode"] for of in (direct, deep)]
    print(f"| added by the virtual device to the empty mode | {layer[0]:.2f} | {layer[1]:.2f} |")


def start_up(folder: Folder) -> None:
    """Prints what a small program takes."""
    imported, watched, checked = [], [], []
    for _ in range(5):
        imported.append(folder.plain(IMPORT))
        watched.append(folder.record(SMALL)[1])
        checked.append(folder.timed([folder.tool, "check", str(folder.trace)])[1])
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
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(Path(path))
        operator_cost(folder)
        start_up(folder)
        trace_size(folder)


if __name__ == "__main__":
    main()
