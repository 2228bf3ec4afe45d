"""Parametrized weights, and hooks on modules, tensors and gradients."""

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT


def halve(bias):
    bias.grad.mul_(0.5)


def train(device):
    torch.manual_seed(0)
    square = nn.Linear(8, 8)
    parametrize.register_parametrization(square, "weight", Symmetric())
    model = nn.Sequential(
        parametrizations.weight_norm(nn.Linear(8, 8)),
        nn.Tanh(),
        square,
        parametrizations.spectral_norm(nn.Linear(8, 8)),
        nn.Linear(8, 1),
    ).to(device)
    norms = []
    model[1].register_forward_hook(lambda module, inputs, output: output * 1.5)
    model[3].register_full_backward_hook(lambda module, inputs, outputs: norms.append(outputs[0].norm()))
    model[4].bias.register_post_accumulate_grad_hook(halve)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        inputs = torch.randn(8, 8).to(device).requires_grad_()
        inputs.register_hook(lambda gradient: norms.append(gradient.norm()))
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses + torch.stack(norms).tolist()


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
