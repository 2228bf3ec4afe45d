"""RMSNorm with and without weights, over one and two dimensions, in two precisions; depthwise convolutions."""

import torch
from torch import nn


def train(device, dtype):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(4, 4, 3, groups=4, padding=1),
        nn.Hardswish(),
        nn.RMSNorm([6, 6]),
        nn.InstanceNorm2d(4, affine=True),
        nn.Conv2d(4, 8, 1),
        nn.PReLU(),
        nn.Flatten(2),
        nn.RMSNorm(36, elementwise_affine=False),
        nn.Linear(36, 16),
        nn.RMSNorm(16),
        nn.Linear(16, 1),
    ).to(device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(4):
        loss = model(torch.randn(4, 4, 6, 6).to(device, dtype)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


for dtype, tolerance in ((torch.float32, 1e-4), (torch.float64, 1e-9), (torch.bfloat16, 5e-2)):
    losses = train("cuda", dtype)
    print("losses:", losses)
    torch.testing.assert_close(losses, train("cpu", dtype), rtol=tolerance, atol=tolerance / 10)
