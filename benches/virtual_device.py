"""What the virtual device costs: start-up, and time per operator against plain CPU, side by side.

    .venv/bin/python benches/virtual_device.py

Prints a markdown table of medians over rounds in which the variants take turns.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 5

STARTUP = "import torch\nx = torch.ones(4, device=DEVICE)\nprint((x + 1).sum().item())\n"

STEPS = """
import json, time, torch
torch.set_num_threads(1)
torch.manual_seed(0)
device = DEVICE
WORK
for _ in range(5):
    step()
if device == "cuda": torch.cuda.synchronize()
start = time.perf_counter()
for _ in range(STEPS):
    step()
if device == "cuda": torch.cuda.synchronize()
print(json.dumps((time.perf_counter() - start) / STEPS))
"""

WORK = {
    "add_ on 1 element": (2000, 1, "x = torch.zeros(1, device=device)\ndef step():\n    x.add_(1)\n"),
    "MLP of 8 layers, AdamW, one training step": (
        30,
        None,
        """
net = torch.nn.Sequential(*[layer for _ in range(8) for layer in (torch.nn.Linear(64, 64), torch.nn.GELU())]).to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
data = torch.randn(16, 64, device=device)
def step():
    optimizer.zero_grad()
    net(data).square().mean().backward()
    optimizer.step()
""",
    ),
}

COUNT = """
import torch
from torch.utils._python_dispatch import TorchDispatchMode
class Count(TorchDispatchMode):
    calls = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Count.calls += 1
        return func(*args, **(kwargs or {}))
device = "cpu"
WORK
step()
Count.calls = 0
with Count():
    step()
print(Count.calls)
"""


def python(source: str, watched: bool) -> tuple[str, float]:
    """Runs a program, watched or plain; returns its output and its wall time."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "program.py")
        script.write_text(source)
        command = [sys.executable, str(script)]
        if watched:
            tool = str(Path(sys.prefix, "bin", "streamsan"))
            command = [tool, "run", "--device", "virtual", "-o", str(Path(folder, "t.sstrace")), str(script)]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
        return done.stdout.strip().splitlines()[-1], time.perf_counter() - start


def main() -> None:
    """Measures and prints."""
    startup: dict[bool, list[float]] = {False: [], True: []}
    steps: dict[tuple[str, bool], list[float]] = {
        (name, watched): [] for name in WORK for watched in (False, True)
    }
    for _ in range(ROUNDS):
        for watched in (False, True):
            device = '"cuda"' if watched else '"cpu"'
            startup[watched].append(python(STARTUP.replace("DEVICE", device), watched)[1])
            for name, (count, _, work) in WORK.items():
                source = STEPS.replace("WORK", work).replace("STEPS", str(count)).replace("DEVICE", device)
                steps[name, watched].append(json.loads(python(source, watched)[0]))
    print("| what | plain CPU | virtual device, recorded | difference |\n| --- | --- | --- | --- |")
    plain, watched_time = statistics.median(startup[False]), statistics.median(startup[True])
    print(
        f"| process with one operator, wall, check included | {plain:.2f} s | {watched_time:.2f} s | {watched_time - plain:.2f} s |"
    )
    for name, (_, operators, work) in WORK.items():
        if operators is None:
            operators = int(python(COUNT.replace("WORK", work), False)[0])
        plain, watched_time = (statistics.median(steps[name, watched]) * 1e6 for watched in (False, True))
        each = (watched_time - plain) / operators
        print(
            f"| {name}: {operators} operators | {plain:.0f} us | {watched_time:.0f} us | {each:.0f} us an operator |"
        )


if __name__ == "__main__":
    main()
