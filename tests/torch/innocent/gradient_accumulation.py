"""Gradients of four micro-batches summed before a step."""

import torch
from torch import nn


def train(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.Softplus(), nn.Linear(32, 3)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    inputs, labels = torch.randn(3, 4, 8, 16), torch.randint(0, 3, (3, 4, 8))
    losses = []
    for step in range(3):
        running = torch.zeros((), device=device)
        for part in range(4):
            logits = model(inputs[step, part].to(device))
            loss = nn.functional.cross_entropy(logits, labels[step, part].to(device)) / 4
            loss.backward()
            running += loss.detach()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(running.item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
