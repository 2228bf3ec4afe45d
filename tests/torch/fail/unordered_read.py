"""The common form: written on one stream, read on another one."""

import torch

side = torch.cuda.Stream()
x = torch.empty(1024, device="cuda")
torch.cuda.synchronize()
x.fill_(1)  # (1)
with torch.cuda.stream(side):
    y = x * 2  # error: [SS101] after (1)
torch.cuda.synchronize()
