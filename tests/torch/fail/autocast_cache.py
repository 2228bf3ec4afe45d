"""The cast weight of autocast is cached: made on one stream, used on the other."""

import torch
from torch import nn

side = torch.cuda.Stream()
layer = nn.Linear(16, 16, bias=False).cuda()
x = torch.randn(4, 16, device="cuda")
torch.cuda.synchronize()
with torch.autocast("cuda", dtype=torch.bfloat16):
    with torch.cuda.stream(side):
        a = layer(x)  # (1)
    b = layer(x)  # error: [SS101] after (1)
torch.cuda.synchronize()
