"""Adam with amsgrad, and other optimizers with state on the device."""

import torch
from torch import nn


def train(device, make):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 24), nn.ELU(), nn.Linear(24, 1)).to(device)
    optimizer = make(model.parameters())
    losses = []
    for _ in range(6):
        inputs = torch.randn(16, 16).to(device)
        loss = nn.functional.mse_loss(model(inputs), inputs.mean(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


optimizers = {
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-2, amsgrad=True),
    "adam, one tensor at a time": lambda parameters: torch.optim.Adam(
        parameters, lr=1e-2, amsgrad=True, foreach=False
    ),
    "rmsprop": lambda parameters: torch.optim.RMSprop(parameters, lr=1e-3, centered=True, momentum=0.5),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=1e-2),
    "nadam": lambda parameters: torch.optim.NAdam(parameters, lr=1e-3),
    "rprop": lambda parameters: torch.optim.Rprop(parameters, lr=1e-3),
}
for name, make in optimizers.items():
    losses = train("cuda", make)
    print(name, "losses:", losses)
    torch.testing.assert_close(losses, train("cpu", make), rtol=1e-4, atol=1e-6)
