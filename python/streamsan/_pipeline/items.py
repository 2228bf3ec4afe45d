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


ONLY = Leaf(0)
"""An item, or a result, that is one tensor."""

_LEAVES = (ONLY, *(Leaf(number) for number in range(1, 32)))


def flatten(value: object, leaves: list[torch.Tensor]) -> object:
    """Appends the tensors of a value to ``leaves``; returns the value with each replaced by a `Leaf`.

    Tuples, lists, dicts, named tuples and dataclasses are looked into. What can be read into a tensor
    counts as one. Anything else is kept as it is.
    """
    if isinstance(value, torch.Tensor) or is_lazy(value):
        leaves.append(cast(torch.Tensor, value))
        number = len(leaves) - 1
        return _LEAVES[number] if number < len(_LEAVES) else Leaf(number)
    return _mapped(value, lambda part: flatten(part, leaves))


def is_lazy(value: object) -> bool:
    """Whether a value stands for a tensor that is read later: it has `read_into`, `shape` and `dtype`."""
    return hasattr(type(value), "read_into")


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
    return tuple([(leaf.shape, leaf.dtype) for leaf in leaves])


class Layout:
    """Where the tensors of items of one signature lie, from the start of an item.

    Attributes:
        signature: Their shapes and types.
        offsets: Where each tensor begins, in bytes.
        size: Bytes of all, aligned.
        nbytes: Bytes of the tensors themselves.

    Example:
        >>> import torch
        >>> layout = Layout(((torch.Size([4]), torch.float32), (torch.Size([2, 2]), torch.int64)))
        >>> layout.offsets, layout.size
        ([0, 512], 1024)
    """

    __slots__ = ("nbytes", "offsets", "signature", "size")

    def __init__(self, of: Signature) -> None:
        """Works the places out."""
        self.signature = of
        self.offsets: list[int] = []
        self.size = self.nbytes = 0
        for shape, dtype in of:
            self.offsets.append(self.size)
            length = shape.numel() * dtype.itemsize
            self.nbytes += length
            self.size += -(-length // ALIGNMENT) * ALIGNMENT


class Layouts:
    """The layouts of a pipeline: equal signatures have one object, so that layouts compare by identity."""

    def __init__(self) -> None:
        """Starts without any."""
        self._known: dict[Signature, Layout] = {}

    def of(self, leaves: Sequence[torch.Tensor]) -> Layout:
        """Returns the layout of some tensors."""
        key = signature(leaves)
        known = self._known.get(key)
        if known is None:
            # Items of ever new shapes must not fill the memory of the host.
            if len(self._known) > 1000:
                self._known.clear()
            known = self._known[key] = Layout(key)
        return known


def views(arena: torch.Tensor, layouts: Sequence[Layout]) -> list[list[torch.Tensor]]:
    """Returns the tensors of items with these layouts, one item behind the other in an arena of bytes."""
    first, count = layouts[0], len(layouts)
    if len(first.signature) == 1 and first.size == first.nbytes > 0 and all([of is first for of in layouts]):
        # The usual case in a few calls.
        shape, dtype = first.signature[0]
        rows = arena[: count * first.size].view(dtype).view(count, *shape)
        return [[row] for row in rows.unbind(0)]
    found, begin = [], 0
    for layout in layouts:
        tensors = []
        for (shape, dtype), offset in zip(layout.signature, layout.offsets, strict=True):
            start = begin + offset
            tensors.append(arena[start : start + shape.numel() * dtype.itemsize].view(dtype).view(shape))
        found.append(tensors)
        begin += layout.size
    return found


def is_plain(leaf: torch.Tensor) -> bool:
    """Whether the bytes of a tensor lie as those of a new one: one copy moves them, with none before it."""
    return leaf.is_contiguous() and not (leaf.is_conj() or leaf.is_neg())


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
