"""A stream that is done keeps its memory, unless it is given back."""

import torch

side = torch.cuda.Stream()
with torch.cuda.stream(side):
    x = torch.ones(20 << 20, device="cuda")  # advice: [SS706]
    x = x.sum()
torch.cuda.synchronize()
del x

y = torch.ones(24 << 20, device="cuda")
torch.cuda.synchronize()
