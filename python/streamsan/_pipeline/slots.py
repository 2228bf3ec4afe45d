"""Slots: the device memory of a pipeline, and the events that say who is done with it."""

from __future__ import annotations

import sys
from typing import Any

import torch

from streamsan._pipeline.items import Signature, views


class Arena:
    """Bytes, and the tensors that lie in them for items of each signature."""

    def __init__(self, arena: torch.Tensor) -> None:
        """Takes the bytes."""
        self.arena = arena
        self._views: dict[Signature, list[torch.Tensor]] = {}

    def views(self, of: Signature) -> list[torch.Tensor]:
        """Returns the tensors for items of one signature."""
        known = self._views.get(of)
        if known is None:
            # Items of ever new shapes must not fill the memory of the host.
            if len(self._views) > 64:
                self._views.clear()
            known = self._views[of] = views(self.arena, of)
        return known


class Slot(Arena):
    """Device memory for one item, used by one item after another.

    An upload waits for the download of the slot's item before, the function for the upload, the download for
    the function. No tensor of a slot is freed while a pipeline runs, and what the function returned is kept
    until the function's stream has been made to wait for its download.

    Attributes:
        downloaded: When the last item that used the slot has left it; `None` if there was none.
        kept: What the function returned for it.
    """

    def __init__(self, arena: torch.Tensor, timed: bool) -> None:
        """Takes an arena of bytes on the device."""
        super().__init__(arena)
        self.downloaded: torch.cuda.Event | None = None
        self.kept: Any = None
        self.clock = [torch.cuda.Event(enable_timing=True) for _ in range(6)] if timed else None

    def holds(self, leaf: torch.Tensor) -> bool:
        """Whether a tensor lies in the slot."""
        return bool(leaf.untyped_storage().data_ptr() == self.arena.untyped_storage().data_ptr())


class Stage(Arena):
    """Page-locked host memory for one item on its way.

    Attributes:
        free: When the copy from it that was submitted last has finished.
        user: The item whose result lies in it.
    """

    def __init__(self, size: int) -> None:
        """Allocates ``size`` bytes.

        Raises:
            RuntimeError: if the memory cannot be page-locked.
        """
        super().__init__(torch.empty(size, dtype=torch.uint8, pin_memory=True))
        self.free: torch.cuda.Event | None = None
        self.user: Any = None


def is_shared(leaves: list[torch.Tensor], position: int) -> bool:
    """Whether somebody but the list holds a tensor that a function returned, or its memory.

    Then the function may write to it again while the download still reads it.
    """
    leaf = leaves[position]
    # The list, this variable, and the argument of the call.
    if sys.getrefcount(leaf) > 3:
        return True
    count = getattr(torch._C, "_storage_Use_Count", None)
    # Who holds the tensor that a view is of cannot be seen.
    if count is None or leaf._base is not None:
        return True
    # One for the tensor, one for the Python object that asks here.
    return bool(count(leaf.untyped_storage()._cdata) > 2)
