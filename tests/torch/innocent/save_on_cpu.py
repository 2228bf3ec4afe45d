"""torch's own offload of saved tensors, through pinned memory and without."""

import torch
from torch import nn


def train(device, pinned):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.Sigmoid(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)).to(
        device
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        with torch.autograd.graph.save_on_cpu(pin_memory=pinned):
            loss = model(torch.randn(16, 16).to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


expected = train("cpu", pinned=False)
for pinned in (True, False):
    losses = train("cuda", pinned)
    print("losses:", losses)
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-6)
