"""Items: nested values with tensors in them, taken apart and put together again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import torch

Signature: TypeAlias = tuple[tuple[torch.Size, torch.dtype], ...]
"""Shapes and types of an item's tensors: items with one signature have their places in a slot in common."""

ALIGNMENT = 512
"""Bytes. torch's own allocator aligns to this, so kernels find in a slot what they find elsewhere."""


@dataclasses.dataclass(frozen=True)
class Leaf:
    """Stands for the tensor with this number in a value that was taken apart."""

    number: int


def flatten(value: object, leaves: list[torch.Tensor]) -> object:
    """Appends the tensors of a value to ``leaves``; returns the value with each replaced by a `Leaf`.

    Tuples, lists, dicts, named tuples and dataclasses are looked into. Anything else is kept as it is.
    """
    if isinstance(value, torch.Tensor):
        leaves.append(value)
        return Leaf(len(leaves) - 1)
    return _mapped(value, lambda part: flatten(part, leaves))


def rebuild(shape: object, leaves: Sequence[Any]) -> Any:
    """Puts a value together again, with other leaves."""
    if isinstance(shape, Leaf):
        return leaves[shape.number]
    return _mapped(shape, lambda part: rebuild(part, leaves))


def _mapped(value: object, change: Callable[[object], object]) -> object:
    if isinstance(value, tuple):
        parts = [change(part) for part in value]
        # A named tuple takes its fields one by one.
        return cast(Any, type(value))(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [change(part) for part in value]
    if isinstance(value, dict):
        return {key: change(part) for key, part in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: change(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.init
        }
        return dataclasses.replace(value, **fields)
    return value


def signature(leaves: Sequence[torch.Tensor]) -> Signature:
    """Returns the shapes and types of some tensors."""
    return tuple((leaf.shape, leaf.dtype) for leaf in leaves)


def places(of: Signature) -> tuple[list[int], int]:
    """Returns where each tensor lies in a slot, and the bytes of all, aligned.

    Example:
        >>> import torch
        >>> places(((torch.Size([4]), torch.float32), (torch.Size([2, 2]), torch.int64)))
        ([0, 512], 1024)
    """
    offsets, end = [], 0
    for shape, dtype in of:
        offsets.append(end)
        end += -(-shape.numel() * dtype.itemsize // ALIGNMENT) * ALIGNMENT
    return offsets, end


def views(arena: torch.Tensor, of: Signature) -> list[torch.Tensor]:
    """Returns tensors of these shapes and types that lie in an arena of bytes."""
    offsets, _ = places(of)
    found = []
    for (shape, dtype), offset in zip(of, offsets, strict=True):
        length = shape.numel() * dtype.itemsize
        found.append(arena[offset : offset + length].view(dtype).view(shape))
    return found


def check_leaf(leaf: torch.Tensor, position: int) -> None:
    """Refuses tensors that have no plain bytes on the CPU.

    Raises:
        TypeError: if the tensor is on a device, sparse, quantized, or a subclass that hides other tensors.
    """
    if leaf.device.type != "cpu":
        raise TypeError(
            f"tensor {position} of the item is on {leaf.device}: the pipeline uploads tensors of the CPU"
        )
    if leaf.layout is not torch.strided or leaf.is_quantized or leaf.is_nested:
        raise TypeError(f"tensor {position} of the item is sparse, quantized or nested: give its plain parts")
