"""Ordinary training and inference for some minutes, to be run plainly and under the recorder.

    streamsan run --device cuda -o /tmp/soak.sstrace tests/gpu/soak.py --seconds 480

Each turn trains a small transformer with batches from a loader that uploads on its own stream, evaluates it with results
that are downloaded on a stream of their own, and runs a convolution network through `streamsan.pipeline`. At the
end it prints one line of JSON: what was done, and after each turn the loss, the process's own memory, and what
torch's allocator keeps and has given out. `soak_compare.py` says whether a recorded run grew more than a plain one.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn

import streamsan

WIDTH, LAYERS, BATCH, LENGTH, WORDS = 256, 4, 8, 64, 1000


class Prefetcher:
    """Uploads the next batch while the present one is worked on."""

    def __init__(self, batches: Iterator[torch.Tensor]) -> None:
        self._batches = batches
        self._stream = torch.cuda.Stream()
        self._next = self._upload()

    def _upload(self) -> torch.Tensor | None:
        batch = next(self._batches, None)
        if batch is None:
            return None
        with torch.cuda.stream(self._stream):
            return batch.pin_memory().cuda(non_blocking=True)

    def __iter__(self) -> Iterator[torch.Tensor]:
        while self._next is not None:
            torch.cuda.current_stream().wait_stream(self._stream)
            batch = self._next
            batch.record_stream(torch.cuda.current_stream())
            self._next = self._upload()
            yield batch


def batches(count: int) -> Iterator[torch.Tensor]:
    for _ in range(count):
        yield torch.randint(WORDS, (BATCH, LENGTH + 1))


def language_model() -> nn.Module:
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), encoder, nn.Linear(WIDTH, WORDS)).cuda()


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> float:
    model.train()
    total = torch.zeros((), device="cuda")
    for batch in Prefetcher(batches(steps)):
        optimizer.zero_grad(set_to_none=True)
        scores = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item() / steps


@torch.no_grad()
def evaluate(model: nn.Module, steps: int) -> float:
    model.eval()
    download = torch.cuda.Stream()
    host = torch.empty(BATCH, LENGTH, WORDS, pin_memory=True)
    best = 0.0
    for batch in Prefetcher(batches(steps)):
        scores = model(batch[:, :-1])
        download.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(download):
            host.copy_(scores, non_blocking=True)
        scores.record_stream(download)
        download.synchronize()
        best = max(best, host.max().item())
    return best


def stream_images(network: nn.Module, count: int) -> float:
    images = [torch.rand(8, 3, 64, 64) for _ in range(count)]
    return sum(result.mean().item() for result in streamsan.pipeline(network, images, progress=False))


def own_memory() -> int:
    """Bytes of the process's own pages: without files, such as the trace, that it has mapped."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=480.0, help="no turn begins later")
    parser.add_argument("--turns", type=int, help="at most so many")
    parser.add_argument("--steps", type=int, default=40, help="training steps of a turn")
    arguments = parser.parse_args()
    steps = arguments.steps
    torch.manual_seed(0)
    model = language_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    network = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 8, 3, padding=1)
    )
    network.cuda().eval()
    start = time.monotonic()
    turns = []
    while arguments.turns is None or len(turns) < arguments.turns:
        if turns and time.monotonic() - start >= arguments.seconds:
            break
        loss = train(model, optimizer, steps)
        evaluate(model, max(1, steps // 2))
        stream_images(network, max(1, steps * 4 // 5))
        torch.cuda.synchronize()
        turns.append(
            {
                "loss": loss,
                "own": own_memory(),
                "kept": torch.cuda.memory_reserved(),
                "given": torch.cuda.memory_allocated(),
            }
        )
    seconds = round(time.monotonic() - start, 1)
    print(json.dumps({"seconds": seconds, "steps": len(turns) * steps, "turns": turns}))


if __name__ == "__main__":
    main()
