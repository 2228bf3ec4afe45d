"""A graph reads the memory of a tensor that is gone: another one has the bytes."""

import torch

x = torch.ones(1 << 20, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
torch.cuda.synchronize()
address = x.data_ptr()
del x
other = torch.full((1 << 20,), 7.0, device="cuda")
graph.replay()  # error: [SS204]
torch.cuda.synchronize()
assert other.data_ptr() == address
assert y[0].item() == 14
