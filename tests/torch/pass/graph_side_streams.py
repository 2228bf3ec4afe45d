"""A capture with a fork and a join, copies to and from page-locked memory in it, and a graph's memory used again."""

import torch

side = torch.cuda.Stream()
source, result = torch.zeros(1024, pin_memory=True), torch.zeros(1024, pin_memory=True)
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    main = torch.cuda.current_stream()
    x.copy_(source, non_blocking=True)
    side.wait_stream(main)
    with torch.cuda.stream(side):
        a = x * 2
    b = x + 1
    main.wait_stream(side)
    total = (a + b).sqrt().square()
    del a, b
    total.add_(1)
    result.copy_(total, non_blocking=True)
for step in range(3):
    source.fill_(step)
    graph.replay()
    torch.cuda.synchronize()
    assert abs(result[3].item() - (3 * step + 2)) < 1e-5
