"""A wait for an event that was never recorded does nothing."""

import torch

side = torch.cuda.Stream()
event = torch.cuda.Event()
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()
x.fill_(1)  # (1)
side.wait_event(event)  # warning: [SS401]
with torch.cuda.stream(side):
    y = x * 2  # error: [SS101] after (1)
torch.cuda.synchronize()
