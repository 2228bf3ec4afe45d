"""A filled tensor is written when it is made."""

import torch

side = torch.cuda.Stream()
x = torch.ones(1024, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = torch.zeros_like(x)  # (1)
z = y + 1  # error: [SS101] after (1)
torch.cuda.synchronize()
