"""Two graphs that share a memory pool run on two streams at once."""

import torch

x = torch.ones(64, 64, device="cuda")
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    a = (x * x).relu() + 1
del a
with torch.cuda.graph(second, pool=first.pool()):
    b = (x + x).tanh() * 2
one, two = torch.cuda.Stream(), torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(one):
    first.replay()  # (1)
with torch.cuda.stream(two):
    second.replay()  # error: [SS502] after (1)
torch.cuda.synchronize()
