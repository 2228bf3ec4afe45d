"""Two graphs that share memory, launched in the order of their captures, and one that is made anew."""

import torch

x = torch.zeros(1024, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    y = (x + 1) * 2
with torch.cuda.graph(second, pool=first.pool()):
    z = (y + 1).square().sum()
for step in range(3):
    x.fill_(step)
    first.replay()
    second.replay()
    assert z.item() == 1024 * (2 * (step + 1) + 1) ** 2
del first
second.reset()
with torch.cuda.graph(second):
    w = x.cumsum(0)
second.replay()
assert w[-1].item() == 2048
