"""Forward on a side stream, backward called from the default stream, the gradient used there."""

import torch

side = torch.cuda.Stream()
weight = torch.ones(1024, device="cuda", requires_grad=True)
for _ in range(3):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        loss = (weight * weight).sum()
    torch.cuda.current_stream().wait_stream(side)
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad
    weight.grad = None
torch.cuda.synchronize()
