"""A small training run with a copy stream, to record a trace for `benches/checker.py --trace`.

.venv/bin/streamsan run --trace training.sstrace benches/training.py
"""

from __future__ import annotations

import torch

LAYERS, WIDTH, BATCH, STEPS = 8, 64, 16, 300


def main() -> None:
    """Trains on batches that a side stream uploads one step ahead."""
    torch.manual_seed(0)
    layers = [layer for _ in range(LAYERS) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU())]
    net = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False)
    side = torch.cuda.Stream()
    host = [torch.randn(BATCH, WIDTH).pin_memory() for _ in range(4)]

    def upload(step: int) -> torch.Tensor:
        with torch.cuda.stream(side):
            return host[step % len(host)].cuda(non_blocking=True)

    upcoming = upload(0)
    for step in range(STEPS):
        torch.cuda.current_stream().wait_stream(side)
        batch = upcoming
        batch.record_stream(torch.cuda.current_stream())
        upcoming = upload(step + 1)
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
