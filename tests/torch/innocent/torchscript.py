"""Functions compiled and traced by TorchScript."""

import torch
from torch import nn


@torch.jit.script
def power(matrix: torch.Tensor, times: int) -> torch.Tensor:
    result = torch.eye(matrix.shape[0], device=matrix.device)
    for _ in range(times):
        result = torch.tanh(result @ matrix)
    return result


def train(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 1)).to(device)
    traced = torch.jit.trace(model, torch.zeros(2, 8, device=device))
    optimizer = torch.optim.SGD(traced.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        inputs = torch.randn(8, 8).to(device)
        loss = traced(power(inputs, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
