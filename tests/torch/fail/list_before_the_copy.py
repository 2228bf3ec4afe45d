"""The list is made of the memory before the copy is done."""

import torch

x = torch.arange(8, device="cuda")
y = (x * 2).to("cpu", non_blocking=True)  # (1)
print(y.tolist())  # error: [SS301] after (1)
