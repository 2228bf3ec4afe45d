# @ gpus: 2
"""Two halves of a model on two devices, micro-batches in a pipeline, gradients back through the copies."""

import torch
from torch import nn


class Halves(nn.Module):
    def __init__(self, devices):
        super().__init__()
        self.devices = devices
        self.front = nn.Sequential(nn.Linear(16, 32), nn.ReLU()).to(devices[0])
        self.back = nn.Sequential(nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 1)).to(devices[1])

    def forward(self, x):
        results = []
        parts = iter(x.split(8))
        middle = self.front(next(parts)).to(self.devices[1], non_blocking=True)
        for part in parts:
            results.append(self.back(middle))
            middle = self.front(part).to(self.devices[1], non_blocking=True)
        results.append(self.back(middle))
        return torch.cat(results)


def train(devices):
    torch.manual_seed(0)
    model = Halves(devices)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(5):
        inputs = torch.randn(32, 16)
        output = model(inputs.to(devices[0]))
        loss = nn.functional.mse_loss(output, inputs.sum(1, keepdim=True).to(output.device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


losses = train(["cuda:0", "cuda:1"])
print("losses:", losses)
torch.testing.assert_close(losses, train(["cpu", "cpu"]), rtol=1e-4, atol=1e-6)
