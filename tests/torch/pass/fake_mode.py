"""Tensors that are made under a fake mode have no memory, and are not asked for it."""

import warnings

import torch
from torch._subclasses import FakeTensor, FakeTensorMode

warnings.simplefilter("error")
x = torch.ones(4, device="cuda")
with FakeTensorMode() as mode:
    fake = torch.empty_strided((4, 4), (4, 1), device="cuda")
    other = torch.ones(4, device="cuda")
    for tensor in (fake, other, torch.randn(4, device="cuda"), torch.arange(4, device="cuda"), mode.from_tensor(x)):
        assert isinstance(tensor, FakeTensor) and tensor.is_cuda
        assert isinstance(tensor.clone().cpu(), FakeTensor)
    assert (fake @ other).shape == (4,)
assert isinstance(other + 1, FakeTensor)
assert x.sum().item() == 4
assert not isinstance(torch.ones(4, device="cuda"), FakeTensor)
