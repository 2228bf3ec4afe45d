"""A graph uploads from a pinned static buffer; the host refills it before the replay is done."""
import torch

static = torch.zeros(1024, pin_memory=True)
x = torch.zeros(1024, device="cuda")
total = torch.zeros((), device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    x.copy_(static, non_blocking=True)
    total.add_(x.sum())
torch.cuda.current_stream().wait_stream(side)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    x.copy_(static, non_blocking=True)
    total.add_(x.sum())
torch.cuda.synchronize()
for step in range(3):
    static.fill_(float(step))  # error: [SS302] after (1)
    graph.replay()  # (1)
torch.cuda.synchronize()
print(total.item())
