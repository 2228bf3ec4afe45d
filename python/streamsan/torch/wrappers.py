"""Tensor classes that handle operators themselves."""

from __future__ import annotations

import enum
from typing import Any

import torch
from torch._subclasses import FakeTensor


class Handling(enum.Enum):
    """What a mode does with an operator, by the classes of its tensors."""

    OURS = 0
    """It is for the mode."""
    WRAPPER = 1
    """A wrapper takes itself apart; its parts come back. The mode answers "not implemented"."""
    FAKE = 2
    """A tensor without data is for the mode below, which is not asked after "not implemented"."""


class _Classes(dict[type, Handling]):
    """How a tensor class is handled; a missing one is looked at."""

    def __missing__(self, kind: type) -> Handling:
        handler = getattr(kind, "__torch_dispatch__", None)
        how = Handling.WRAPPER
        if handler is torch._C._disabled_torch_dispatch_impl:
            how = Handling.OURS
        elif issubclass(kind, FakeTensor):
            how = Handling.FAKE
        self[kind] = how
        return how


_classes = _Classes()


def handling(types: Any) -> Handling:
    """Returns how an operator is handled: the first class that is not plain decides."""
    for kind in types:
        how = _classes[kind]
        if how is not Handling.OURS:
            return how
    return Handling.OURS
