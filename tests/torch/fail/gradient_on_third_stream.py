"""Backward orders gradients with the stream that called it, not with others."""

import torch

side, third = torch.cuda.Stream(), torch.cuda.Stream()
weight = torch.ones(1024, device="cuda", requires_grad=True)
torch.cuda.synchronize()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    loss = (weight * weight).sum()
    loss.backward()  # (1)
with torch.cuda.stream(third):
    norm = weight.grad.square()  # error: [SS101] after (1)
torch.cuda.synchronize()
