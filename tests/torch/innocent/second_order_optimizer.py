"""LBFGS with a closure, and a sparse embedding with SparseAdam."""

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


def words(device):
    torch.manual_seed(0)
    table = nn.Embedding(50, 8, sparse=True).to(device)
    optimizer = torch.optim.SparseAdam(table.parameters(), lr=1e-2)
    losses = []
    for _ in range(4):
        loss = table(torch.randint(0, 50, (12,)).to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


for part in (curve, words):
    losses = part("cuda")
    print(part.__name__, "losses:", losses)
    torch.testing.assert_close(losses, part("cpu"), rtol=1e-3, atol=1e-6)
