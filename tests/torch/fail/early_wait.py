"""The wait stands before the write that it is meant to cover."""

import torch

side = torch.cuda.Stream()
x = torch.zeros(1024, device="cuda")
side.wait_stream(torch.cuda.current_stream())
x.add_(1)  # (1)
with torch.cuda.stream(side):
    y = x.sum()  # error: [SS101] after (1)
torch.cuda.synchronize()
