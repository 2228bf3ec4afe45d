"""from_dlpack inside the stream's block: producer and consumer stream are the same, so nothing waits."""

import torch

side = torch.cuda.Stream()
x = torch.ones(256, device="cuda")
x.mul_(2)  # (1)
with torch.cuda.stream(side):
    y = torch.from_dlpack(x)
    y.add_(1)  # error: [SS101] after (1)
torch.cuda.synchronize()
