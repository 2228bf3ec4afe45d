"""Collectives: which of them NCCL does, whose calls record themselves."""

from __future__ import annotations

from typing import Final

import torch

# What NCCL's back ends call themselves. Since torch 2.15 "nccl" is another one than before, which is kept.
NCCL: Final = frozenset(("nccl", "nccl2", "nccl-lazy", "nccl-legacy"))

# Namespaces of collectives whose results are new tensors, to be waited for with `wait_tensor`.
FUNCTIONAL: Final = frozenset(("_c10d_functional", "_c10d_functional_autograd"))


def by_nccl(args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Returns whether an operator of `c10d` on these arguments ends in NCCL.

    Other back ends are given host tensors over the same bytes: what they do with the memory of a device is
    not in torch's code for CUDA.
    """
    if not on_device(args, kwargs):
        return False
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.ScriptObject) and "ProcessGroup" in str(value._type()):
            group = torch.distributed.ProcessGroup.unbox(value)
            return bool(group._get_backend(torch.device("cuda")).name() in NCCL)
    return False


def on_device(args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Returns whether tensors of a device are among the arguments."""
    return any(_on_device(value) for value in (*args, *kwargs.values()))


def _on_device(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.is_cuda)
    return isinstance(value, (list, tuple)) and bool(value) and _on_device(value[0])
