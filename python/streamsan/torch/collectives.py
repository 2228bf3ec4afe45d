"""Collectives: which of them NCCL does, whose calls record themselves."""

from __future__ import annotations

import torch


def by_nccl(args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Returns whether an operator of `c10d` on these arguments ends in NCCL.

    Other back ends are given host tensors over the same bytes: what they do with the memory of a device is
    not in torch's code for CUDA.
    """
    values = [*args, *kwargs.values()]
    if not any(_on_device(value) for value in values):
        return False
    for value in values:
        if isinstance(value, torch.ScriptObject) and "ProcessGroup" in str(value._type()):
            group = torch.distributed.ProcessGroup.unbox(value)
            return bool(group._get_backend(torch.device("cuda")).name() == "nccl")
    return False


def _on_device(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.is_cuda)
    return isinstance(value, (list, tuple)) and bool(value) and _on_device(value[0])
