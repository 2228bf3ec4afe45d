"""Numbers that are drawn in a graph: each launch draws what would be drawn then without one."""

import torch

own = torch.Generator("cuda")
graph = torch.cuda.CUDAGraph()
graph.register_generator_state(own)
with torch.cuda.graph(graph):
    x = torch.randn(64, device="cuda")
    dropped = torch.nn.functional.dropout(torch.ones(10_000, device="cuda"), 0.5)
    y = torch.rand(64, device="cuda", generator=own)
# torch writes the seeds on the capture's stream at its begin, and on the launch's stream at each launch.
torch.cuda.synchronize()
own.manual_seed(7)
torch.manual_seed(3)
launches = []
for _ in range(2):
    graph.replay()
    launches.append((x.clone(), y.clone()))
    assert 0.4 < (dropped == 0).float().mean().item() < 0.6
own.manual_seed(7)
torch.manual_seed(3)
for in_graph, in_graph_too in launches:
    assert torch.equal(in_graph, torch.randn(64, device="cuda"))
    torch.nn.functional.dropout(torch.ones(10_000, device="cuda"), 0.5)
    assert torch.equal(in_graph_too, torch.rand(64, device="cuda", generator=own))
assert not torch.equal(launches[0][0], launches[1][0])
