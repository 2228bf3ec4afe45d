#@ gpus: 2
"""Default streams of two devices are two streams."""

import torch

side = torch.cuda.Stream(device=1)
there = torch.zeros(1024, device="cuda:1")
torch.cuda.synchronize(1)
side.wait_stream(torch.cuda.current_stream(0))
there.add_(1)  # (1)
with torch.cuda.stream(side):
    total = there.sum()  # error: [SS101] after (1)
torch.cuda.synchronize(1)
