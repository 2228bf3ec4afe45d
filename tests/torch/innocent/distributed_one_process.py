"""DistributedDataParallel in a group of one process, over gloo and over NCCL."""

import tempfile

import torch
import torch.distributed as dist
from torch import nn


def train(device, wrap):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
    if wrap:
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        loss = model(torch.randn(8, 8).to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


with tempfile.TemporaryDirectory() as folder:
    for backend in ("gloo", "nccl"):
        dist.init_process_group(backend, init_method=f"file://{folder}/{backend}", rank=0, world_size=1)
        losses = train("cuda", wrap=True)
        dist.destroy_process_group()
        torch.testing.assert_close(losses, train("cpu", wrap=False), rtol=1e-4, atol=1e-6)
print("losses:", losses)
