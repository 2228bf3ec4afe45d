"""The way out: results are downloaded, brought to where they go, and handed out in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from streamsan._pipeline.intake import SMALL
from streamsan._pipeline.items import is_plain, rebuild
from streamsan._pipeline.load import Item, Load, Part
from streamsan._pipeline.registration import Registration
from streamsan._pipeline.sinks import Sink
from streamsan._pipeline.slots import Slot, Stage, Stages


@dataclasses.dataclass(slots=True)
class Transfer:
    """The copies that bring the results of a part to the host.

    Attributes:
        sources: Tensors on the device.
        targets: Where they are copied to: the caller's tensors, or a staging buffer.
        staged: For each item, its results in the staging buffer; `None` if the targets are the caller's.
        stage: The staging buffer.
        nbytes: Bytes of the results.
    """

    sources: Sequence[torch.Tensor] = ()
    targets: Sequence[torch.Tensor] = ()
    nbytes: int = 0
    staged: list[list[torch.Tensor]] | None = None
    stage: Stage | None = None


class Outlet:
    """Downloads results and hands them out."""

    def __init__(self, stages: int, sink: Sink, registration: Registration | None = None) -> None:
        """Takes how many staging buffers there may be, and where results go.

        Args:
            stages: Staging buffers.
            sink: Where results go.
            registration: Where pageable targets are locked in place; `None` if results are staged for them.
        """
        self._registration = registration
        self.stages = Stages(stages)
        self.sink = sink
        self._finisher = ThreadPoolExecutor(1, "streamsan-download")

    def prepare(self, part: Part, load: Load, slot: Slot, last: bool) -> Transfer:
        """Decides how results travel. Small ones that are new are brought together in the slot first.

        The function's stream is current: what is done here comes after the function.

        Args:
            part: The items.
            load: The load that they are of.
            slot: Its slot.
            last: Whether the slot's inputs are not needed any more.
        """
        live = self._with_targets(part)
        found = [leaf for item in live for leaf in item.found]
        if not found:
            return Transfer()
        key = tuple([item.found_layout for item in live if item.found_layout is not None])
        size = sum([layout.size for layout in key])
        nbytes = sum([layout.nbytes for layout in key])
        on_device = all([leaf.is_cuda for leaf in found])
        if on_device and len(found) > 1 and size < len(found) * SMALL:
            if all([item.in_place for item in live]):
                stage = self.stages.take(load.size)
                places = dict(zip(map(id, load.live), stage.views(load.key), strict=True))
                staged = [places[id(item)] for item in live]
                return Transfer([slot.span(load.size)], [stage.span(load.size)], nbytes, staged, stage)
            # A result in its slot is not moved, nor written over by that of another item.
            if last and size <= slot.size and not any([item.in_slot or item.in_place for item in live]):
                torch._foreach_copy_([view for tensors in slot.views(key) for view in tensors], found)
                # What the function made was read on its own stream: it may go at once, or be written again.
                slot.kept, part.shared = None, False
                stage = self.stages.take(size)
                return Transfer([slot.span(size)], [stage.span(size)], nbytes, stage.views(key), stage)
        given = [item.given for item in live]
        if on_device and all([self._takes_copies(tensors) for tensors in given]):
            targets = [leaf for tensors in given if tensors is not None for leaf in tensors]
            return Transfer(found, targets, nbytes)
        stage = self.stages.take(size)
        # A tensor of the host may be filled by a copy of the function's own: it is taken when all is done.
        staged = [
            [view if leaf.is_cuda else leaf for view, leaf in zip(views, item.found, strict=True)]
            for views, item in zip(stage.views(key), live, strict=True)
        ]
        views = [view for tensors in staged for view in tensors]
        pairs = [(leaf, view) for leaf, view in zip(found, views, strict=True) if leaf.is_cuda]
        nbytes = sum([leaf.nbytes for leaf, _ in pairs])
        return Transfer([leaf for leaf, _ in pairs], [view for _, view in pairs], nbytes, staged, stage)

    def finish(self, part: Part, transfer: Transfer, downloaded: torch.cuda.Event) -> None:
        """Brings results from the staging buffer to where they go, once they are there."""
        live = part.live
        if transfer.staged is None:
            for item in live:
                item.targets = item.given or []
        else:
            part.arrived = self._finisher.submit(self._empty, downloaded, live, transfer.staged)
            if transfer.stage is not None:
                transfer.stage.busy = part.arrived
        for item in live:
            item.found = ()

    def hand_out(self, part: Part) -> None:
        """Waits for the results of a part and gives them to the caller."""
        try:
            if part.arrived is not None:
                part.arrived.result()
            elif part.events is not None:
                part.events[2].synchronize()
        except Exception as error:
            for item in part.items:
                item.fail("download", error)
        for item in part.items:
            value: Any = None
            if item.failed is None:
                value = rebuild(item.result, item.targets)
            self.sink.take(item.index, value, item.failed)

    def end(self) -> None:
        """Stops."""
        self._finisher.shutdown(cancel_futures=True)

    def _with_targets(self, part: Part) -> list[Item]:
        """Finds where the results go; an item whose result does not fit there fails."""
        for item in part.live:
            assert item.found_layout is not None
            try:
                item.given = self.sink.given(item.index, item.found_layout.signature)
            except Exception as error:
                item.fail("download", error)
        return part.live

    @staticmethod
    def _empty(downloaded: torch.cuda.Event, live: list[Item], staged: list[list[torch.Tensor]]) -> None:
        """Copies results from a staging buffer to where they go, in a thread of its own."""
        downloaded.synchronize()
        for item, leaves in zip(live, staged, strict=True):
            item.targets = item.given or [torch.empty(leaf.shape, dtype=leaf.dtype) for leaf in leaves]
        try:
            torch._foreach_copy_(
                [target for item in live for target in item.targets],
                [leaf for leaves in staged for leaf in leaves],
            )
        except Exception:
            for item, leaves in zip(live, staged, strict=True):
                try:
                    for target, leaf in zip(item.targets, leaves, strict=True):
                        target.copy_(leaf)
                except Exception as error:
                    item.fail("download", error)

    def _takes_copies(self, given: list[torch.Tensor] | None) -> bool:
        """Whether results can be copied from the device to where they go, without a copy that blocks."""
        if given is None:
            return False
        if self._registration is not None:
            return all([self._registration.lock(leaf) for leaf in given])
        return all([leaf.is_pinned() and is_plain(leaf) for leaf in given])
