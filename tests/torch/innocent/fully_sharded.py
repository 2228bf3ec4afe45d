"""FSDP2 in a group of one process: gathers on streams of its own, frees ordered without record_stream."""

import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


def train(device, shard):
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16)) for _ in range(3)]
    model = nn.Sequential(*blocks, nn.Linear(16, 1)).to(device)
    if shard:
        for block in model:
            fully_shard(block)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(4):
        loss = model(torch.randn(8, 16).to(device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


with tempfile.TemporaryDirectory() as folder:
    for backend in ("gloo", "nccl"):
        dist.init_process_group(backend, init_method=f"file://{folder}/{backend}", rank=0, world_size=1)
        losses = train("cuda", shard=True)
        dist.destroy_process_group()
        torch.testing.assert_close(losses, train("cpu", shard=False), rtol=1e-4, atol=1e-6)
print("losses:", losses)
