"""Two device buffers filled in turn on a side stream, with events in both directions."""

import torch
from torch import nn


class Prefetcher:
    def __init__(self, batches):
        self.batches = batches
        self.stream = torch.cuda.Stream()
        self.buffers = [torch.empty_like(batches[0], device="cuda") for _ in range(2)]
        self.filled = [torch.cuda.Event() for _ in range(2)]
        self.free = [torch.cuda.Event() for _ in range(2)]
        for event in self.free:
            event.record()

    def fill(self, index):
        if index < len(self.batches):
            slot = index % 2
            with torch.cuda.stream(self.stream):
                self.stream.wait_event(self.free[slot])
                self.buffers[slot].copy_(self.batches[index], non_blocking=True)
                self.buffers[slot].mul_(2).sub_(1)
                self.filled[slot].record()

    def __iter__(self):
        self.fill(0)
        for index in range(len(self.batches)):
            slot = index % 2
            self.fill(index + 1)
            torch.cuda.current_stream().wait_event(self.filled[slot])
            yield self.buffers[slot]
            self.free[slot].record()


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
