"""A graph's output is read on another stream, which does not wait for the launch."""

import torch

side = torch.cuda.Stream()
x = torch.ones(1024, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
torch.cuda.synchronize()
graph.replay()  # (1)
with torch.cuda.stream(side):
    z = y + 1  # error: [SS502] after (1)
torch.cuda.synchronize()
assert z[0].item() == 3
