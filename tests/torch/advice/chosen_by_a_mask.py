#@ virtual: on a GPU the wait is made in the middle of the operator and was not reported
"""An operator that has to count before it can make its result waits in each turn."""

import torch

x = torch.ones(1 << 10, device="cuda")
torch.cuda.synchronize()

for _ in range(6):
    mask = x > 0
    chosen = x[mask]  # advice: [SS702]
    x = x * 1.5
torch.cuda.synchronize()
