"""After the swap the model's weight is the tensor that is still being uploaded."""

import torch
from torch import nn

load = torch.cuda.Stream()
layer = nn.Linear(64, 64, bias=False).cuda()
host = torch.randn(64, 64).pin_memory()
x = torch.randn(4, 64, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(load):
    fresh = nn.Parameter(host.to("cuda", non_blocking=True))  # (1)
torch.utils.swap_tensors(layer.weight, fresh)
y = layer(x)  # error: [SS101] after (1)
torch.cuda.synchronize()
