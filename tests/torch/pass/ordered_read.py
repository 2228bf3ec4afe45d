"""The same with a wait."""

import torch

side = torch.cuda.Stream()
x = torch.empty(1024, device="cuda")
torch.cuda.synchronize()
x.fill_(1)
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = x * 2
torch.cuda.synchronize()
