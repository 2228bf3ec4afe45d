"""The way in: items are taken from the source, checked, packed into loads, and staged if they have to be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import torch

from streamsan._pipeline.failures import Refused
from streamsan._pipeline.items import ONLY, Layout, Layouts, check_leaf, flatten, is_lazy, is_plain
from streamsan._pipeline.load import Item, Load
from streamsan._pipeline.registration import Registration
from streamsan._pipeline.slots import Stages

SMALL = 256 << 10
"""Bytes of a tensor. Below, the start of a copy costs more than to bring several together on the host."""

_MOST = 1024
"""Items in a load at most."""

_PATIENCE = 2e-3
"""Seconds for which a load waits for a source that is slow, while the device may have nothing to do."""


class Intake:
    """Makes loads of items."""

    def __init__(
        self,
        stages: int,
        room: int,
        filled: int,
        pack: int | None,
        layouts: Layouts,
        home: torch.cuda.Stream,
        registration: Registration | None = None,
    ) -> None:
        """Takes how many staging buffers there may be, and the bytes of a slot.

        Args:
            stages: Staging buffers, as many as loads are staged before one of them is submitted, and one.
            room: Bytes of a slot.
            filled: Bytes of a load that needs no further items.
            pack: Items in a load at most; by default as many as fill it well.
            layouts: The pipeline's layouts.
            home: The stream that was current when the pipeline was called; the source may use it.
            registration: Where pageable memory is locked in place; `None` if it is staged.
        """
        self.stages = Stages(stages)
        self._room, self._filled, self._layouts, self._home = room, filled, layouts, home
        self._registration = registration
        self._last: Layout | None = None
        self._most = _MOST if pack is None else pack
        self._worker = ThreadPoolExecutor(1, "streamsan-upload")

    def loads(self, items: Iterator[Any]) -> Iterator[Load]:
        """Gives the loads. What the source raises is an item too, and the last one."""
        load, number, index, waited = Load(0), 0, 0, 0.0
        going = True
        while going:
            begin = time.perf_counter()
            try:
                source = next(items)
            except StopIteration:
                break
            except Exception as error:
                item, going = Item(index), False
                item.fail("source", error)
            else:
                item = self._take(index, source)
            waited += time.perf_counter() - begin
            index += 1
            size = item.size
            if load.items and load.size + size > self._room:
                yield self._closed(load)
                number, waited = number + 1, 0.0
                load = Load(number)
            load.items.append(item)
            load.size += size
            if len(load.items) >= self._most or load.size >= self._filled or waited > _PATIENCE:
                yield self._closed(load)
                number, waited = number + 1, 0.0
                load = Load(number)
        if load.items:
            yield self._closed(load)

    def end(self) -> None:
        """Stops staging."""
        self._worker.shutdown(cancel_futures=True)

    def _take(self, index: int, source: object) -> Item:
        """Takes an item apart and checks its tensors."""
        if type(source) is torch.Tensor:
            usual = self._usual(index, source)
            if usual is not None:
                return usual
        item = Item(index)
        if isinstance(source, Refused):
            item.fail("upload", source.error)
            return item
        leaves = item.leaves
        item.shape = flatten(source, leaves)
        try:
            if not leaves:
                raise TypeError(
                    f"the item ({type(source).__name__}) holds no tensor: make tensors of arrays and numbers"
                )
            for position, leaf in enumerate(leaves):
                if is_lazy(leaf):
                    item.direct, item.lazy = False, True
                    continue
                check_leaf(leaf, position)
                if leaf.requires_grad:
                    # The copies of an item are none of autograd's business.
                    leaves[position] = leaf.detach()
                if self._registration is not None:
                    item.direct &= self._registration.lock(leaves[position])
                elif item.direct and not (leaf.is_pinned() and is_plain(leaf)):
                    # torch would copy it to plain pageable memory first, and wait.
                    item.direct = False
            layout = self._layouts.of(leaves)
            if layout.size > self._room:
                raise ValueError(
                    f"it needs {layout.size} bytes, a slot has {self._room}: "
                    "say item_bytes= for items of different sizes, or chunk=True to cut it into runs of rows"
                )
            item.layout = self._last = layout
        except Exception as error:
            item.fail("upload", error)
        return item

    def _usual(self, index: int, source: torch.Tensor) -> Item | None:
        """Takes a page-locked tensor like the one before; `None` if it is none, or needs to be looked at."""
        last = self._last
        if last is None or len(last.signature) != 1:
            return None
        shape, dtype = last.signature[0]
        try:
            same = source.dtype is dtype and source.layout is torch.strided and source.shape == shape
            if same and not source.requires_grad and source.is_pinned() and is_plain(source):
                return Item(index, ONLY, [source], last)
        except RuntimeError:
            # Some tensors have no shape.
            pass
        return None

    def _closed(self, load: Load) -> Load:
        """Starts to stage a load, if it has to be."""
        load.live = live = [item for item in load.items if item.failed is None]
        if live:
            load.key = tuple([item.layout for item in live if item.layout is not None])
            count = sum([len(item.leaves) for item in live])
            if (count > 1 and load.size < count * SMALL) or not all([item.direct for item in live]):
                made = None
                if not self._home.query():
                    # Page-locked items may still be filled by copies that the source has not waited for.
                    made = torch.cuda.Event()
                    made.record(self._home)
                load.staged = self._worker.submit(self._fill, load, made)
        return load

    def _fill(self, load: Load, made: torch.cuda.Event | None) -> None:
        """Copies the tensors of a load to a staging buffer, in a thread of its own."""
        if made is not None:
            made.synchronize()
        # The load that used the buffer before was submitted: staging runs ahead by fewer loads than buffers.
        stage = self.stages.take(self._room)
        views = stage.views(load.key)
        load.stage = stage
        if not any([item.lazy for item in load.live]):
            try:
                torch._foreach_copy_(
                    [view for tensors in views for view in tensors],
                    [leaf for item in load.live for leaf in item.leaves],
                )
                return
            except Exception:
                # One after the other, then: which one it is, and the others have their results.
                pass
        for item, tensors in zip(load.live, views, strict=True):
            try:
                for target, leaf in zip(tensors, item.leaves, strict=True):
                    if is_lazy(leaf):
                        cast(Any, leaf).read_into(target)
                    else:
                        target.copy_(leaf)
            except Exception as error:
                item.fail("source" if item.lazy else "upload", error)
