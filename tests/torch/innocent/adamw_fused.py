"""AdamW and Adam with `fused=True`."""

import torch
from torch import nn


def train(device, kind):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)).to(
        device
    )
    optimizer = kind(model.parameters(), lr=1e-2, weight_decay=0.01, fused=device == "cuda")
    losses = []
    for _ in range(8):
        inputs, labels = torch.randn(32, 16).to(device), torch.randint(0, 4, (32,)).to(device)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


for kind in (torch.optim.AdamW, torch.optim.Adam, torch.optim.SGD):
    losses = train("cuda", kind)
    print(kind.__name__, "losses:", losses)
    torch.testing.assert_close(losses, train("cpu", kind), rtol=1e-4, atol=1e-6)
