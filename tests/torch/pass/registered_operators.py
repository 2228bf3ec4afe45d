"""Operators that the program registers run on device tensors as what they are made of."""

import torch


@torch.library.custom_op("streamsan_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@torch.library.custom_op("streamsan_tests::bump", mutates_args=("x",), device_types="cuda")
def bump(x: torch.Tensor) -> None:
    x.add_(1)


x = torch.ones(4, device="cuda")
assert twice(x).tolist() == [2.0] * 4
bump(x)
assert x.tolist() == [2.0] * 4
