"""An allocation writes nothing: fresh memory may be filled on another stream."""

import torch

side = torch.cuda.Stream()
x = torch.empty(1024, device="cuda")
with torch.cuda.stream(side):
    x.fill_(1)
torch.cuda.current_stream().wait_stream(side)
y = x + 1
torch.cuda.synchronize()
