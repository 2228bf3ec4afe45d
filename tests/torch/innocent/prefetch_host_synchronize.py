"""Batches uploaded on a side stream; the host waits for the upload, and for the model before it lets go."""

import torch
from torch import nn


class Prefetcher:
    def __init__(self, batches):
        self.batches = batches
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        for batch in self.batches:
            with torch.cuda.stream(self.stream):
                uploaded = batch.to("cuda", non_blocking=True).mul_(2).sub_(1)
            self.stream.synchronize()
            yield uploaded
            torch.cuda.current_stream().synchronize()


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
