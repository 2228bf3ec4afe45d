"""A custom autograd.Function with saved tensors, in place work and a gradient of its own."""

import torch
from torch import nn


class ScaledSwish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        gate = torch.sigmoid(x * scale)
        ctx.save_for_backward(x, gate, scale)
        return x * gate

    @staticmethod
    def backward(ctx, gradient):
        x, gate, scale = ctx.saved_tensors
        slope = gate * (1 - gate)
        for_x = gradient * (gate + x * slope * scale)
        for_scale = (gradient * x * x * slope).sum() if ctx.needs_input_grad[1] else None
        return for_x, for_scale


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.round_()

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clone().clamp_(-1, 1)


def train(device):
    torch.manual_seed(0)
    first, second = nn.Linear(8, 16).to(device), nn.Linear(16, 1).to(device)
    scale = nn.Parameter(torch.ones((), device=device))
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters(), scale], lr=0.05)
    losses = []
    for _ in range(5):
        hidden = ScaledSwish.apply(first(torch.randn(16, 8).to(device)), scale)
        hidden = StraightThrough.apply(hidden * 8) / 8
        loss = second(hidden).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
