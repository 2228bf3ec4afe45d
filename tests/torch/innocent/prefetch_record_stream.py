"""Batches uploaded one ahead on a side stream: wait_stream, and record_stream for the allocator."""

import torch
from torch import nn


class Prefetcher:
    def __init__(self, batches):
        self.batches = iter(batches)
        self.stream = torch.cuda.Stream()
        self.preload()

    def preload(self):
        batch = next(self.batches, None)
        self.next = None
        if batch is not None:
            with torch.cuda.stream(self.stream):
                self.next = batch.to("cuda", non_blocking=True).mul_(2).sub_(1)

    def __iter__(self):
        while self.next is not None:
            torch.cuda.current_stream().wait_stream(self.stream)
            batch = self.next
            batch.record_stream(torch.cuda.current_stream())
            self.preload()
            yield batch


def train(batches):
    torch.manual_seed(0)
    device = "cuda" if batches else "cpu"
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    host = [torch.randn(64, 32) for _ in range(6)]
    losses = []
    for batch in (
        batches([part.pin_memory() for part in host]) if batches else [2 * part - 1 for part in host]
    ):
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


losses = train(Prefetcher)
print("losses:", losses)
torch.testing.assert_close(losses, train(None), rtol=1e-4, atol=1e-6)
