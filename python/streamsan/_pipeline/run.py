"""The loop of a pipeline.

Three streams: uploads, the function, downloads. An item is submitted to all three in turn, with events
between them and no wait of the host. The host waits in two places: before it fills a staging buffer again,
and before it hands out a result. So the device's memory is that of the slots and of what the function makes,
however far the host runs ahead, and neither `record_stream` nor a synchronize is needed.

Where the host cannot even feed one stream, as with small items, three streams only cost events: the loop
times a few items, and goes on with one stream if all stages of an item together take the device less than the
host needs to submit it.
"""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import torch

from streamsan._pipeline.failures import ItemError
from streamsan._pipeline.items import Signature, check_leaf, flatten, places, rebuild, signature
from streamsan._pipeline.progress import Progress
from streamsan._pipeline.results import Results, Statistics
from streamsan._pipeline.slots import Slot, Stage, is_shared
from streamsan._pipeline.timing import Sample

_Events: TypeAlias = tuple[torch.cuda.Event, torch.cuda.Event, torch.cuda.Event]
"""When an item was uploaded, computed, downloaded."""


@dataclasses.dataclass
class Item:
    """One item on its way."""

    index: int
    shape: object
    leaves: list[torch.Tensor]
    signature: Signature = ()
    failed: ItemError | None = None
    staged: Future[list[torch.Tensor]] | None = None
    stage: Stage | None = None
    down_stage: Stage | None = None
    result: object = None
    targets: list[torch.Tensor] = dataclasses.field(default_factory=list)
    arrived: Future[list[torch.Tensor]] | None = None
    events: _Events | None = None


class Loop:
    """One run of a pipeline: its streams, slots and staging buffers."""

    def __init__(
        self,
        function: Callable[..., Any],
        device: torch.device,
        slots: Sequence[Slot],
        out: Callable[[int, Any], None] | Sequence[Any] | None,
        progress: Progress,
        grad: bool,
        overlap: bool | None,
    ) -> None:
        """Makes the streams; the slots' memory belongs to the current stream."""
        self.function, self.device, self.slots, self.out = function, device, slots, out
        self.progress, self.grad = progress, grad
        self.home = torch.cuda.current_stream(device)
        self.up, self.compute, self.down = (torch.cuda.Stream(device) for _ in range(3))
        for stream in (self.up, self.compute, self.down):
            stream.wait_stream(self.home)
        self.undecided = overlap is None
        if overlap is False:
            self._join()
        self.up_stages: list[Stage | None] = [None] * len(slots)
        self.down_stages: list[Stage | None] = [None] * len(slots)
        self.worker = ThreadPoolExecutor(1, "streamsan-upload")
        self.finisher = ThreadPoolExecutor(1, "streamsan-download")
        self.under_way: deque[Item] = deque()
        self.ready: deque[Item] = deque()
        self.results = Results()
        self.errors: list[ItemError] = []
        self.bytes_up = self.bytes_down = 0
        self.sample = Sample()
        self.events: list[_Events] = []
        self.sizes: dict[Signature, int] = {}
        self.after: torch.cuda.Event | None = None
        self.timed_from, self.begin = 0, time.perf_counter()

    def run(self, items: Iterator[Any]) -> None:
        """Runs all items. Whatever happens, nothing is under way when it returns."""
        try:
            for index, source in enumerate(self._checked(items)):
                self.ready.append(self._stage(index, source))
                # Staging runs ahead of the copies by all slots but one: its buffer is free by then.
                if len(self.ready) >= len(self.slots):
                    self._submit(self.ready.popleft())
            while self.ready:
                self._submit(self.ready.popleft())
            while self.under_way:
                self._hand_out(self.under_way.popleft())
        finally:
            self._end()

    def _checked(self, items: Iterator[Any]) -> Iterator[Any]:
        """Gives the items; one that the source cannot give is an item too, and the last one."""
        while True:
            try:
                item = next(items)
            except StopIteration:
                return
            except Exception as error:
                yield _Failure(error)
                return
            yield item

    def _stage(self, index: int, source: object) -> Item:
        """Takes an item apart and starts to fill its staging buffer if its memory is pageable."""
        if isinstance(source, _Failure):
            return Item(index, None, [], failed=ItemError(index, "source", source.error))
        leaves: list[torch.Tensor] = []
        shape = flatten(source, leaves)
        item = Item(index, shape, leaves)
        try:
            if not leaves:
                raise TypeError(
                    f"the item ({type(source).__name__}) holds no tensor: make tensors of arrays and numbers"
                )
            for position, leaf in enumerate(leaves):
                check_leaf(leaf, position)
            # The copies of an item are none of autograd's business.
            item.leaves = leaves = [leaf.detach() if leaf.requires_grad else leaf for leaf in leaves]
            item.signature = signature(leaves)
            size = self._size(item.signature)
            if size > self.slots[0].arena.numel():
                raise ValueError(
                    f"it needs {size} bytes, a slot has {self.slots[0].arena.numel()}: "
                    "say item_bytes= for items of different sizes"
                )
            if not all(leaf.is_pinned() for leaf in leaves):
                item.staged = self.worker.submit(self._fill, item, leaves)
        except Exception as error:
            item.failed = ItemError(index, "upload", error)
        return item

    def _size(self, of: Signature) -> int:
        """Bytes of a slot for items of one signature."""
        size = self.sizes.get(of)
        if size is None:
            if len(self.sizes) > 1000:
                self.sizes.clear()
            size = self.sizes[of] = places(of)[1]
        return size

    def _fill(self, item: Item, leaves: list[torch.Tensor]) -> list[torch.Tensor]:
        """Copies pageable memory to a staging buffer, in a thread of its own."""
        turn = item.index % len(self.slots)
        stage = self.up_stages[turn]
        if stage is None:
            stage = self.up_stages[turn] = Stage(self.slots[turn].arena.numel())
        elif stage.free is not None:
            # The item before was submitted: staging runs ahead by fewer items than there are buffers.
            stage.free.synchronize()
        item.stage = stage
        staged = stage.views(item.signature)
        for target, leaf in zip(staged, leaves, strict=True):
            target.copy_(leaf)
        return staged

    def _submit(self, item: Item) -> None:
        """Submits one item to all streams."""
        # The device keeps to its slots by itself; this bounds what the host has to remember.
        while len(self.under_way) >= 2 * len(self.slots):
            self._hand_out(self.under_way.popleft())
        self.under_way.append(item)
        if item.failed is None and item.staged is not None:
            try:
                item.leaves = item.staged.result()
            except Exception as error:
                item.failed = ItemError(item.index, "upload", error)
        if item.failed is not None:
            return
        if self.undecided:
            self._decide(item.index)
        slot = self.slots[item.index % len(self.slots)]
        item.events = self.events.pop() if self.events else _three_events()
        clock = slot.clock if self.sample.wants(item.index) else None
        stage = "upload"
        try:
            inputs = self._upload(slot, item, item.events, clock)
            stage = "function"
            self._compute(slot, item, item.events, inputs, clock)
            stage = "download"
            self._download(slot, item, item.events, clock)
        except Exception as error:
            item.failed = ItemError(item.index, stage, error)
            # What was submitted of the item may still use the slot and its staging buffer.
            uploaded, computed, downloaded = item.events
            uploaded.record(self.up)
            if self.up is not self.compute:
                self.compute.wait_event(uploaded)
                computed.record(self.compute)
                self.down.wait_event(computed)
            downloaded.record(self.down)
        finally:
            torch.cuda.set_stream(self.home)
        slot.downloaded = item.events[2]

    def _decide(self, index: int) -> None:
        """Goes on with one stream if that is faster, once enough items were timed."""
        if index == self.sample.FIRST:
            # What the first items warm up, for seconds perhaps, says nothing of the next ones.
            self.timed_from, self.begin = index, time.perf_counter()
        if index < self.sample.enough or not self.sample.is_ready():
            return
        self.undecided = False
        stages = [seconds for seconds in self.sample.medians() if seconds is not None]
        if stages and sum(stages) < (time.perf_counter() - self.begin) / (index - self.timed_from):
            self._join()

    def _join(self) -> None:
        """Makes one stream of the three."""
        for other in (self.up, self.down):
            self.compute.wait_stream(other)
        self.up = self.down = self.compute

    def _upload(
        self, slot: Slot, item: Item, events: _Events, clock: list[torch.cuda.Event] | None
    ) -> list[torch.Tensor]:
        inputs = slot.views(item.signature)
        torch.cuda.set_stream(self.up)
        if not self.home.query():
            # The source may have made the item with work that is still under way there.
            self.up.wait_stream(self.home)
        if slot.downloaded is not None and self.up is not self.compute:
            self.up.wait_event(slot.downloaded)
        if clock is not None:
            clock[0].record(self.up)
        for target, leaf in zip(inputs, item.leaves, strict=True):
            target.copy_(leaf, non_blocking=True)
            self.bytes_up += leaf.nbytes
        if clock is not None:
            clock[1].record(self.up)
        if item.stage is not None or self.up is not self.compute:
            events[0].record(self.up)
        if item.stage is not None:
            item.stage.free = events[0]
        return inputs

    def _compute(
        self,
        slot: Slot,
        item: Item,
        events: _Events,
        inputs: list[torch.Tensor],
        clock: list[torch.cuda.Event] | None,
    ) -> None:
        if self.up is not self.compute:
            torch.cuda.set_stream(self.compute)
            if self.after is not None:
                self.compute.wait_event(self.after)
                self.after = None
            self.compute.wait_event(events[0])
        # The upload has waited for the download of the slot's item before: its result may go, and this stream
        # may use the memory again.
        slot.kept = None
        if clock is not None:
            clock[2].record(self.compute)
        # The slot's own tensors are for later items too: `requires_grad_`, `unsqueeze_` and an operation
        # in place that autograd records would stay with them.
        argument = rebuild(item.shape, [leaf.detach() for leaf in inputs])
        if self.grad:
            item.result = self.function(argument)
        else:
            with torch.no_grad():
                item.result = self.function(argument)
        if clock is not None:
            clock[3].record(self.compute)
        if self.down is not self.compute:
            events[1].record(self.compute)

    def _download(
        self, slot: Slot, item: Item, events: _Events, clock: list[torch.cuda.Event] | None
    ) -> None:
        found: list[torch.Tensor] = []
        item.result = flatten(item.result, found)
        for position, leaf in enumerate(found):
            if not leaf.is_cuda:
                # The function may keep it, and change it for the next item. A page-locked one may still be
                # filled by a copy: that one is taken when the item is done.
                if not leaf.is_pinned():
                    found[position] = leaf.detach().clone()
            elif leaf.device != slot.arena.device:
                raise ValueError(
                    f"the function returned a tensor on {leaf.device}, the pipeline is on "
                    f"{slot.arena.device}: bring it there in the function"
                )
        # By position: a variable for the tensor would be one more that holds it.
        shared = any(
            found[position].is_cuda and not slot.holds(found[position]) and is_shared(found, position)
            for position in range(len(found))
        )
        slot.kept = found
        given = self._given(item, found)
        direct = (
            given is not None
            and all(leaf.is_pinned() for leaf in given)
            and not any(leaf.is_pinned() for leaf in found)
        )
        targets = given if direct and given is not None else self._staging(item, found)
        if self.down is not self.compute:
            self.down.wait_event(events[1])
            torch.cuda.set_stream(self.down)
        if clock is not None:
            clock[4].record(self.down)
        for target, leaf in zip(targets, found, strict=True):
            if target is not leaf:
                target.copy_(leaf.detach() if leaf.requires_grad else leaf, non_blocking=True)
                self.bytes_down += leaf.nbytes
        if clock is not None:
            clock[5].record(self.down)
        events[2].record(self.down)
        item.targets = targets
        if clock is not None:
            self.sample.took(clock)
        if shared:
            # The function keeps what it returned and may write to it for the next item.
            self.after = events[2]
        if not direct:
            item.arrived = self.finisher.submit(self._empty, events[2], targets, given)
            if item.down_stage is not None:
                item.down_stage.user = item.arrived

    def _given(self, item: Item, found: list[torch.Tensor]) -> list[torch.Tensor] | None:
        """The caller's tensors for an item's result; `None` if there are none."""
        if self.out is None or callable(self.out):
            return None
        given: list[torch.Tensor] = []
        flatten(self.out[item.index], given)
        if signature(given) != signature(found):
            raise ValueError(f"the function returned {_spoken(found)}, `out` has room for {_spoken(given)}")
        return given

    def _staging(self, item: Item, found: list[torch.Tensor]) -> list[torch.Tensor]:
        """Page-locked memory for a result, free again after the item that used it before was emptied."""
        turn = item.index % len(self.slots)
        of = signature(found)
        size = self._size(of)
        stage = self.down_stages[turn]
        if stage is not None and isinstance(stage.user, Future):
            stage.user.exception()
        if stage is None or stage.arena.numel() < size:
            stage = self.down_stages[turn] = Stage(max(size, 1))
        item.down_stage = stage
        return [target if leaf.is_cuda else leaf for target, leaf in zip(stage.views(of), found, strict=True)]

    @staticmethod
    def _empty(
        downloaded: torch.cuda.Event, staged: list[torch.Tensor], given: list[torch.Tensor] | None
    ) -> list[torch.Tensor]:
        """Copies a result from its staging buffer to where it goes, in a thread of its own."""
        downloaded.synchronize()
        if given is None:
            return [leaf.clone() for leaf in staged]
        for target, leaf in zip(given, staged, strict=True):
            target.copy_(leaf)
        return given

    def _hand_out(self, item: Item) -> None:
        """Waits for an item's result and gives it to the caller."""
        value: Any = None
        if item.failed is None:
            try:
                if item.arrived is not None:
                    leaves = item.arrived.result()
                else:
                    assert item.events is not None
                    item.events[2].synchronize()
                    leaves = item.targets
                value = rebuild(item.result, leaves)
            except Exception as error:
                item.failed = ItemError(item.index, "download", error)
        if item.failed is not None:
            self.errors.append(item.failed)
            value = None
        elif callable(self.out):
            try:
                self.out(item.index, value)
            except Exception as error:
                self.errors.append(ItemError(item.index, "out", error))
            value = None
        self.results.append(value)
        if item.failed is None and item.events is not None:
            self._reuse(item.events)
        self.progress(len(self.results), self.bytes_up + self.bytes_down)

    def _reuse(self, events: _Events) -> None:
        """Takes the events of an item back, once nothing will ask for them."""
        held = any(slot.downloaded is events[2] for slot in self.slots) or self.after is events[2]
        if not held and all(stage is None or stage.free is not events[0] for stage in self.up_stages):
            self.events.append(events)

    def _end(self) -> None:
        """Leaves nothing under way, and gives the slots back to the stream that they came from."""
        self.worker.shutdown(cancel_futures=True)
        self.finisher.shutdown(cancel_futures=True)
        torch.cuda.set_stream(self.home)
        for stream in (self.up, self.compute, self.down):
            self.home.wait_stream(stream)
        for stream in (self.up, self.compute, self.down):
            stream.synchronize()
        self.progress.end()

    def statistics(self, begin: float, slot_bytes: int) -> Statistics:
        """What was done since ``begin`` on the monotonic clock."""
        stages = [stage for stage in (*self.up_stages, *self.down_stages) if stage is not None]
        times = self.sample.medians()
        ideal, bound = self.sample.ideal(len(self.results), len(self.slots))
        return Statistics(
            items=len(self.results),
            failed=len(self.errors),
            bytes_up=self.bytes_up,
            bytes_down=self.bytes_down,
            seconds=time.monotonic() - begin,
            slots=len(self.slots),
            device_bytes=slot_bytes * len(self.slots),
            pinned_bytes=sum(stage.arena.numel() for stage in stages),
            upload=times[0],
            function=times[1],
            download=times[2],
            ideal=ideal,
            bound=bound,
        )


def _three_events() -> _Events:
    return torch.cuda.Event(), torch.cuda.Event(), torch.cuda.Event()


@dataclasses.dataclass(frozen=True)
class _Failure:
    """What the source raised instead of an item."""

    error: Exception


def _spoken(leaves: list[torch.Tensor]) -> str:
    return ", ".join(f"{leaf.dtype} {list(leaf.shape)}" for leaf in leaves) or "no tensor"
