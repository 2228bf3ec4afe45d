"""Tensor classes: wrappers are taken apart, others keep their class; transforms and compiled functions run."""

import torch
from torch.testing._internal.two_tensor import TwoTensor


class Named(torch.Tensor):
    pass


pair = TwoTensor(torch.ones(2, device="cuda"), torch.zeros(2, device="cuda")) + 1
assert (pair.a.tolist(), pair.b.tolist()) == ([2.0, 2.0], [1.0, 1.0])
named = torch.ones(3, device="cuda").as_subclass(Named) + 1
assert type(named) is Named and named.tolist() == [2.0] * 3
rows = torch.func.vmap(lambda row: (row * row).sum())(torch.ones(3, 4, device="cuda"))
assert rows.tolist() == [4.0] * 3
gradient = torch.func.grad(lambda value: (value * value).sum())(torch.ones(2, device="cuda"))
assert gradient.tolist() == [2.0, 2.0]
scripted = torch.jit.script(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Flatten()))
for _ in range(3):
    assert scripted(torch.ones(2, 2, 2, device="cuda")).sum().item() == 8.0
assert torch.compile(lambda value: torch.relu(value) * 2)(torch.ones(3, device="cuda")).tolist() == [2.0] * 3
