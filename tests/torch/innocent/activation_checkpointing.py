"""Activations of every block computed again during backward, in both ways torch has."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


def train(device, reentrant):
    torch.manual_seed(0)
    blocks = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(4)]).to(device)
    head = nn.Linear(16, 1).to(device)
    optimizer = torch.optim.SGD([*blocks.parameters(), *head.parameters()], lr=0.1)
    losses = []
    for _ in range(4):
        hidden = torch.randn(8, 16).to(device).requires_grad_()
        for block in blocks:
            hidden = checkpoint(block, hidden, use_reentrant=reentrant)
        hidden = checkpoint_sequential(blocks, 2, hidden, use_reentrant=reentrant)
        loss = head(hidden).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


for reentrant in (False, True):
    losses = train("cuda", reentrant)
    print("losses:", losses)
    torch.testing.assert_close(losses, train("cpu", reentrant), rtol=1e-4, atol=1e-6)
