"""Host and copy both read the pinned memory: no conflict."""

import torch

host = torch.ones(256, pin_memory=True)
x = host.to("cuda", non_blocking=True)
print(host.sum())
y = host.clone()
torch.cuda.synchronize()
