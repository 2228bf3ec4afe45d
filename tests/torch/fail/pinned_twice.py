"""pin_memory() of memory that is page-locked already gives the tensor itself, not a copy."""

import torch

stage = torch.zeros(256, pin_memory=True)
device = [torch.zeros(256, device="cuda") for _ in range(3)]
torch.cuda.synchronize()
for step in range(3):
    stage.fill_(step)  # error: [SS302] after (1)
    device[step].copy_(stage.pin_memory(), non_blocking=True)  # (1)
torch.cuda.synchronize()
