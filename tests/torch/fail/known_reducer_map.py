"""The shape of pytorch #53159: a pinned table is uploaded without blocking and rewritten for the next step."""

import torch

used = torch.zeros(64, dtype=torch.int32).pin_memory()
used_on_device = torch.zeros(64, dtype=torch.int32, device="cuda")
torch.cuda.synchronize()
for step in range(2):
    used.fill_(step)  # error: [SS302] after (1)
    used_on_device.copy_(used, non_blocking=True)  # (1)
torch.cuda.synchronize()
