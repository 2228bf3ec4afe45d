"""Slots and staging buffers: the fixed memory of a pipeline, and what says that it is free again."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import torch

from streamsan._pipeline.items import Layout, views


class Arena:
    """Bytes, and the tensors that lie in them for items of each layout."""

    def __init__(self, arena: torch.Tensor) -> None:
        """Takes the bytes."""
        self.arena = arena
        self.size = arena.numel()
        self._views: dict[tuple[Layout, ...], list[list[torch.Tensor]]] = {}
        self._span = arena

    def views(self, of: tuple[Layout, ...]) -> list[list[torch.Tensor]]:
        """Returns the tensors of items with these layouts, one item behind the other."""
        known = self._views.get(of)
        if known is None:
            # Items of ever new shapes must not fill the memory of the host.
            if len(self._views) > 64:
                self._views.clear()
            known = self._views[of] = views(self.arena, of)
        return known

    def span(self, size: int) -> torch.Tensor:
        """Returns the first bytes."""
        if self._span.numel() != size:
            self._span = self.arena[:size]
        return self._span


class Slot(Arena):
    """Device memory for one load, used by one load after another.

    An upload waits for the download of the slot's load before, the function for the upload, the download for
    the function. No tensor of a slot is freed while a pipeline runs, and what the function returned is kept
    until the function's stream has been made to wait for its download.

    Attributes:
        downloaded: When the last load that used the slot has left it; `None` if there was none.
        kept: What the function returned for it.
        clock: Events that time a load.
    """

    def __init__(self, arena: torch.Tensor) -> None:
        """Takes an arena of bytes on the device."""
        super().__init__(arena)
        self.downloaded: torch.cuda.Event | None = None
        self.kept: Any = None
        self.clock = [torch.cuda.Event(enable_timing=True) for _ in range(6)]
        self._address = arena.untyped_storage().data_ptr()

    def holds(self, leaf: torch.Tensor) -> bool:
        """Whether a tensor lies in the slot."""
        return bool(leaf.untyped_storage().data_ptr() == self._address)


class Stage(Arena):
    """Page-locked host memory for one load on its way.

    Attributes:
        busy: What has to be waited for before it is filled again: the copy from it, or who empties it.
    """

    def __init__(self, size: int) -> None:
        """Allocates ``size`` bytes.

        Raises:
            MemoryError: if the memory cannot be page-locked.
        """
        try:
            arena = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        except RuntimeError as error:
            raise MemoryError(
                f"{size} bytes of page-locked host memory for staging were refused "
                f"({str(error).splitlines()[0]}): "
                "ask for fewer or smaller slots (slots=, memory=, pack=1), or give page-locked tensors"
            ) from error
        super().__init__(arena)
        self.busy: torch.cuda.Event | Future[Any] | None = None

    def wait(self) -> None:
        """Blocks until it may be filled."""
        if isinstance(self.busy, Future):
            self.busy.exception()
        elif self.busy is not None:
            self.busy.synchronize()


class Stages:
    """Staging buffers, taken in turn and made when they are needed first."""

    def __init__(self, count: int) -> None:
        """At most ``count`` of them."""
        self._count = count
        self._stages: deque[Stage] = deque()

    def take(self, size: int) -> Stage:
        """Returns the buffer that was taken longest ago, free and with room for ``size`` bytes.

        Raises:
            MemoryError: if memory cannot be page-locked.
        """
        if len(self._stages) < self._count:
            stage = Stage(max(size, 1))
        else:
            stage = self._stages[0]
            stage.wait()
            if stage.size < size:
                stage = Stage(size)
            self._stages.popleft()
        self._stages.append(stage)
        return stage

    def clear(self) -> None:
        """Frees the buffers. Nothing may be under way."""
        self._stages.clear()

    def uses(self, event: torch.cuda.Event) -> bool:
        """Whether somebody may still ask for an event here."""
        # Another thread may take a buffer meanwhile.
        return any(stage.busy is event for stage in tuple(self._stages))

    @property
    def size(self) -> int:
        """Bytes of all buffers."""
        return sum(stage.size for stage in tuple(self._stages))


def _references_when_alone(leaves: Sequence[object], position: int) -> int:
    leaf = leaves[position]
    return sys.getrefcount(leaf)


# The list, a variable, and the argument of the call; newer versions of Python count fewer.
_ALONE = _references_when_alone([object()], 0)


def is_shared(leaves: Sequence[torch.Tensor], position: int) -> bool:
    """Whether somebody but the list holds a tensor that a function returned, or its memory.

    Then the function may write to it again while the download still reads it.
    """
    leaf = leaves[position]
    if sys.getrefcount(leaf) > _ALONE:
        return True
    count = getattr(torch._C, "_storage_Use_Count", None)
    # Who holds the tensor that a view is of cannot be seen.
    if count is None or leaf._base is not None:
        return True
    # One for the tensor, one for the Python object that asks here.
    return bool(count(leaf.untyped_storage()._cdata) > 2)
