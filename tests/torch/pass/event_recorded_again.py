"""An event recorded again later on the same stream covers the older work too."""

import torch

side = torch.cuda.Stream()
a, b = torch.zeros(256, device="cuda"), torch.zeros(256, device="cuda")
torch.cuda.synchronize()
ready = torch.cuda.Event()
with torch.cuda.stream(side):
    a.fill_(1)
    ready.record()
    b.fill_(2)
    ready.record()
torch.cuda.current_stream().wait_event(ready)
print((a + b).sum().item())
