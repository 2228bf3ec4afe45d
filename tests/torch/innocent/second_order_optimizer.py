"""LBFGS with a closure and a line search."""

import torch
from torch import nn


def curve(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
    x = torch.linspace(-1, 1, 32)[:, None].to(device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, line_search_fn="strong_wolfe")
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = (model(x) - x.sin()).square().mean()
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(2):
        optimizer.step(closure)
    return losses


losses = curve("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, curve("cpu"), rtol=1e-3, atol=1e-6)
