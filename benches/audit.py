"""What an audited call costs: a training loop on the virtual device, audited calls with 1, 4 and 16 tensors.

    .venv/bin/python benches/audit.py

Runs itself under `streamsan run`. Times are of one call of a function that does nothing, median of all steps:

- *after a step*: the first call after a training step, whose events are checked then;
- *again*: the same call once more, when nothing has happened since.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEPS = 200
TENSORS = (1, 4, 16)


def measure() -> None:
    """Trains, and times audited calls."""
    import torch

    import streamsan

    assert streamsan.auditing()
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    side = torch.cuda.Stream()
    host = torch.zeros(16, 64, pin_memory=True)
    target = torch.zeros(16, 1, device="cuda")

    @streamsan.audit
    def use(*tensors: torch.Tensor) -> None:
        pass

    def step() -> torch.Tensor:
        with torch.cuda.stream(side):
            batch = host.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        batch.record_stream(torch.cuda.current_stream())
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.mse_loss(model(batch), target).backward()
        optimizer.step()
        return batch

    others = [torch.zeros(16, 64, device="cuda") for _ in range(16)]
    events = streamsan._core.settle()
    for _ in range(20):
        use(step())
    print(f"{(streamsan._core.settle() - events) / 20:.0f} events a step")
    print("| tensors | after a step | again |\n| --- | --- | --- |")
    for count in TENSORS:
        first, again = [], []
        for _ in range(STEPS):
            tensors = [step(), *others[: count - 1]]
            for times in (first, again):
                start = time.perf_counter()
                use(*tensors)
                times.append(time.perf_counter() - start)
        print(
            f"| {count} | {statistics.median(first) * 1e6:.0f} us | {statistics.median(again) * 1e6:.0f} us |"
        )


def main() -> None:
    """Records the measurement."""
    if os.environ.get("STREAMSAN_TRACE"):
        measure()
        return
    with tempfile.TemporaryDirectory() as folder:
        trace = str(Path(folder) / "audit.sstrace")
        options = ["--device", "virtual", "--no-check", "-o", trace]
        subprocess.run([sys.executable, "-m", "streamsan", "run", *options, __file__], check=True)


main()
