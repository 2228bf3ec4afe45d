"""torch.Stream and torch.Event order as those of torch.cuda do."""

import torch

side = torch.Stream(device="cuda")
x = torch.zeros(256, device="cuda")
torch.accelerator.synchronize()
with side:
    x.add_(1)
event = torch.Event(device="cuda")
event.record(side)
torch.accelerator.current_stream().wait_event(event)
print(x.sum().item())
