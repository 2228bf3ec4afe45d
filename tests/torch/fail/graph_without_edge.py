"""Inside a graph only its own edges order: a fork that waits too early leaves two nodes without order."""

import torch

side = torch.cuda.Stream()
x = torch.ones(1024, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    y = x * 2  # (1)
    with torch.cuda.stream(side):
        z = y + 1  # error: [SS101] after (1)
    main.wait_stream(side)
torch.cuda.synchronize()
graph.replay()
torch.cuda.synchronize()
