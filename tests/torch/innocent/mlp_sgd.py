"""An MLP trained by SGD with momentum."""

import torch
from torch import nn


def train(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10)).to(
        device
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    inputs, labels = torch.randn(256, 32), torch.randint(0, 10, (256,))
    losses = []
    for _ in range(3):
        for first in range(0, 256, 64):
            batch = inputs[first : first + 64].to(device)
            target = labels[first : first + 64].to(device)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
