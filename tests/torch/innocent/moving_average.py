"""An exponential moving average of the weights, updated on a side stream; and torch's AveragedModel."""

import copy

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def train(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
    average = copy.deepcopy(model).requires_grad_(False)
    library = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    side = torch.cuda.Stream() if device == "cuda" else None
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(6):
        loss = model(torch.randn(16, 16).to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if side:
            torch.cuda.current_stream().wait_stream(side)
        optimizer.step()
        library.update_parameters(model)
        if side:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 0.1)
        losses.append(loss.item())
    if side:
        side.synchronize()
    inputs = torch.randn(16, 16).to(device)
    losses += [average(inputs).square().mean().item(), library(inputs).square().mean().item()]
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
