"""Activation checkpointing stops its recomputation by an exception, and draws the same numbers again."""

import torch
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.ReLU()).cuda()
x = torch.randn(4, 8, device="cuda", requires_grad=True)
gradients = []
for reentrant in (False, True):
    torch.manual_seed(1)
    checkpoint(layers, x, use_reentrant=reentrant).sum().backward()
    gradients.append(x.grad)
    x.grad = None
torch.manual_seed(1)
layers(x).sum().backward()
for gradient in gradients:
    assert torch.equal(gradient, x.grad)
