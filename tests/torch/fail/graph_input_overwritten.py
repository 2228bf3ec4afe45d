"""A graph's input is filled on another stream, which the launch does not wait for."""

import torch

load = torch.cuda.Stream()
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
torch.cuda.synchronize()
with torch.cuda.stream(load):
    x.fill_(3)  # (1)
graph.replay()  # error: [SS501] after (1)
torch.cuda.synchronize()
assert y[0].item() == 6
