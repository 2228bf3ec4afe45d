"""Two forwards on two streams, one backward: autograd orders what it adds to the same gradients."""

import torch
from torch import nn

one, two = torch.cuda.Stream(), torch.cuda.Stream()
layer = nn.Linear(16, 16).cuda()
a, b = torch.randn(8, 16, device="cuda"), torch.randn(8, 16, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(one):
    x = layer(a).sum()
with torch.cuda.stream(two):
    y = layer(b).sum()
torch.cuda.current_stream().wait_stream(one)
torch.cuda.current_stream().wait_stream(two)
(x + y).backward()
layer.weight.grad.mul_(2)
torch.cuda.synchronize()
