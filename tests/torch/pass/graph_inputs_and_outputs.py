"""A graph whose inputs are uploaded on one stream, and whose outputs are read on another, each with a wait."""

import torch

load, read = torch.cuda.Stream(), torch.cuda.Stream()
staging = torch.empty(1024, pin_memory=True)
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = (x * 2).relu() + 1
torch.cuda.synchronize()
main = torch.cuda.current_stream()
seen = []
for step in range(4):
    staging.fill_(step)
    load.wait_stream(main)
    with torch.cuda.stream(load):
        x.copy_(staging, non_blocking=True)
    uploaded = load.record_event()
    main.wait_event(uploaded)
    main.wait_stream(read)
    graph.replay()
    read.wait_stream(main)
    with torch.cuda.stream(read):
        seen.append(y[:2].clone())
    uploaded.synchronize()
torch.cuda.synchronize()
assert [values.tolist() for values in seen] == [[2 * step + 1] * 2 for step in range(4)]
