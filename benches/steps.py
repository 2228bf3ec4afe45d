"""A training step under every way of watching it: time, ratio to an empty dispatch mode, bytes of the trace.

    python benches/steps.py --device cuda
    python benches/steps.py --device virtual

The step: a transformer of 6 layers, forward, backward, AdamW with `foreach`. *small* (width 256, batch 8x64) is
bound by the host, *large* (width 2048, batch 8x512) by a GPU. Each contender is a process of its own; they take
turns, and a figure is the median of its rounds.

- plain: without streamsan.
- preload: with the preloaded library, without the torch layer.
- empty mode: below a dispatch mode in Python that does nothing but call the operator.
- CSAN: torch's own sanitizer.
- streamsan: as `streamsan run` does it on a GPU.
- computing: as `streamsan run` does it on the virtual device, with the arithmetic on the CPU.

*Processor time* is that of all threads of the process, least of the rounds, and its ratio to the empty mode: it
says most when other work is on the machine, and on a GPU it contains the waiting.
*Issued in* is what the host takes for a step that finds the device idle: where that is less than the step of the
plain contender, a GPU is not kept waiting.

On the virtual device there is no plain contender: all run with the preloaded library. Kernels compute nothing
there, and matrix products, which need cuBLAS, are functions in Python that make an empty result, for every
contender but the last: what remains is the host's side of a step. The large step is left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONTENDERS = {
    "cuda": ("plain", "preload", "empty mode", "streamsan", "CSAN"),
    "virtual": ("preload", "empty mode", "streamsan", "computing", "CSAN"),
}
# Width, batch, length, steps of a round (of CSAN: a fifth).
SIZES = {"small": (256, 8, 64, 10), "large": (2048, 8, 512, 5)}
WITH_LAYER = ("streamsan", "computing")


def replace_products() -> Any:
    """Makes matrix products that compute nothing: they need cuBLAS, which the virtual device does not have."""
    import torch

    library = torch.library.Library("aten", "IMPL")

    def mm(a: Any, b: Any) -> Any:
        return a.new_empty((a.shape[0], b.shape[1]))

    def addmm(bias: Any, a: Any, b: Any, **_: Any) -> Any:
        return a.new_empty((a.shape[0], b.shape[1]))

    def bmm(a: Any, b: Any) -> Any:
        return a.new_empty((a.shape[0], a.shape[1], b.shape[2]))

    for name, function in (("mm", mm), ("addmm", addmm), ("bmm", bmm)):
        library.impl(name, function, "CUDA")
    return library


def make_step(size: str) -> Callable[[], None]:
    """Returns one step of training."""
    import torch

    width, batch, length, _ = SIZES[size]
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        width,
        max(4, width // 64),
        4 * width,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=True,
    )
    model = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    data = torch.randn(batch, length, width, device="cuda")

    def step() -> None:
        optimizer.zero_grad()
        model(data).square().mean().backward()
        optimizer.step()

    return step


def watch(contender: str) -> Any:
    """Puts in place what the contender has, and returns what must stay alive."""
    from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode

    if contender == "CSAN":
        import torch.cuda._sanitizer as sanitizer

        sanitizer.enable_cuda_sanitizer()
    elif contender == "empty mode":

        class Empty(TorchDispatchMode):
            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
            ) -> Any:
                return func(*args, **(kwargs or {}))

        mode = Empty()
        mode.__enter__()
        return mode
    elif contender == "streamsan":
        from streamsan.torch.observe import ObserveMode

        own = _pop_mode()
        if type(own) is not ObserveMode:
            # On the virtual device: the mode for a GPU in place of the one that computes.
            own = ObserveMode()
        own.__enter__()
        return own
    return None


def work(contender: str, device: str, size: str) -> None:
    """Runs rounds as it is told to: the other side of `Worker`."""
    import torch

    kept = []
    if device == "virtual" and contender != "computing":
        kept.append(replace_products())
    kept.append(watch(contender))
    step = make_step(size)
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    print("ready", flush=True)
    for line in sys.stdin:
        steps = int(line)
        start = time.perf_counter()
        step()
        # Until here the device has nothing to do before: what the host takes to issue a step.
        issued = time.perf_counter() - start
        torch.cuda.synchronize()
        start, used = time.perf_counter(), time.process_time()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        wall, used = time.perf_counter() - start, time.process_time() - used
        answer = {"ms": wall / steps * 1e3, "processor": used / steps * 1e3, "issued": issued * 1e3}
        if contender in WITH_LAYER:
            from streamsan import _core

            answer["operations"] = _core.operations_recorded()
        print(json.dumps(answer), flush=True)


class Worker:
    """A contender in a process of its own."""

    def __init__(self, contender: str, device: str, size: str, folder: Path) -> None:
        """Starts it, and waits until it has warmed up."""
        self.contender = contender
        self.trace = folder / f"{contender.replace(' ', '-')}-{size}.sstrace"
        program = [
            sys.executable,
            str(Path(__file__).resolve()),
            "--work",
            contender,
            "--device",
            device,
            "--size",
            size,
        ]
        record = [sys.executable, "-m", "streamsan", "run", "--device", device, "--no-check", "--force"]
        record += ["-o", str(self.trace), "--"]
        if contender in WITH_LAYER:
            program = record + program
        elif device == "virtual" or contender == "preload":
            # Isolated: then Python does not run what installs the torch layer.
            program = [*record, program[0], "-I", *program[1:]]
        self.errors = folder / f"{self.trace.stem}.txt"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
            )
        self.expect("ready")
        self.steps = SIZES[size][3] if contender != "CSAN" else max(1, SIZES[size][3] // 5)
        self.times: list[float] = []
        self.processor: list[float] = []
        self.issued: list[float] = []
        self.counts: list[tuple[int, int]] = []

    def expect(self, start: str) -> str:
        """Reads a line that starts so."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(start):
                return line
        self.process.wait()
        raise SystemExit(f"{self.contender} ended early:\n{self.errors.read_text()}")

    def round(self) -> None:
        """Runs one round."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{self.steps}\n")
        self.process.stdin.flush()
        answer = json.loads(self.expect("{"))
        self.times.append(answer["ms"])
        self.processor.append(answer["processor"])
        self.issued.append(answer["issued"])
        if "operations" in answer:
            self.counts.append((answer["operations"], self.trace.stat().st_size))

    def end(self) -> None:
        """Lets the process end."""
        self.process.communicate()

    def median(self) -> float:
        """Milliseconds a step."""
        return statistics.median(self.times)


def measure(device: str, size: str, rounds: int, folder: Path) -> None:
    """Prints the table of one size."""
    workers = [Worker(contender, device, size, folder) for contender in CONTENDERS[device]]
    for worker in workers:
        worker.round()
        worker.times.clear()
        worker.processor.clear()
        worker.issued.clear()
        worker.counts.clear()
    for _ in range(rounds):
        for worker in workers:
            worker.round()
    by_name = {worker.contender: worker for worker in workers}
    empty = by_name["empty mode"].median()
    least_of_empty = min(by_name["empty mode"].processor)
    base = by_name.get("plain", by_name["preload"])
    width, batch, length, _ = SIZES[size]
    print(
        f"\nwidth {width}, batch {batch}x{length}; {rounds} rounds; ms a step, of the host and what it waits for\n"
    )
    print(
        f"| | median | least | most | to {base.contender} | to the empty mode | processor time, least | ratio | issued in |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for worker in workers:
        times = worker.times
        print(
            f"| {worker.contender} | {worker.median():.2f} | {min(times):.2f} | {max(times):.2f} "
            f"| {worker.median() / base.median():.2f} | {worker.median() / empty:.2f} "
            f"| {min(worker.processor):.2f} | {min(worker.processor) / least_of_empty:.2f} "
            f"| {statistics.median(worker.issued):.2f} |"
        )
    for worker in workers:
        if len(worker.counts) > 1:
            (first, before), (last, after) = worker.counts[0], worker.counts[-1]
            steps = (worker.steps + 1) * (len(worker.counts) - 1)
            print(
                f"\n{worker.contender}: {(last - first) / steps:.0f} operations and "
                f"{(after - before) / steps:,.0f} bytes of trace a step"
            )
    for worker in workers:
        worker.end()


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=CONTENDERS, default="virtual")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--size", choices=SIZES, action="append")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.work, options.device, options.size[0])
        return
    with tempfile.TemporaryDirectory() as path:
        for size in options.size or (["small", "large"] if options.device == "cuda" else ["small"]):
            measure(options.device, size, options.rounds, Path(path))


if __name__ == "__main__":
    main()
