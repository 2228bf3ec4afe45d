"""Two streams run one module in training mode: both update its running statistics."""

import torch
from torch import nn

one, two = torch.cuda.Stream(), torch.cuda.Stream()
norm = nn.BatchNorm1d(16).cuda()
a, b = torch.randn(8, 16, device="cuda"), torch.randn(8, 16, device="cuda")
torch.cuda.synchronize()
with torch.no_grad():
    with torch.cuda.stream(one):
        norm(a)  # (1)
    with torch.cuda.stream(two):
        norm(b)  # error: [SS101] after (1)
torch.cuda.synchronize()
