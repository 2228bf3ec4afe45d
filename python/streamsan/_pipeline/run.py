"""The loop of a pipeline.

Three streams: uploads, the function, downloads. A load, one item or several small ones, is submitted to all
three in turn, with events between them and no wait of the host. The host waits in two places: before it fills
a staging buffer again, and before it hands out a result. So the device's memory is that of the slots and of
what the function makes, however far the host runs ahead, and neither `record_stream` nor a synchronize is
needed.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from streamsan._pipeline.failures import clear_own_frames
from streamsan._pipeline.intake import Intake
from streamsan._pipeline.items import ONLY, Layouts, flatten, is_plain, rebuild
from streamsan._pipeline.load import Events, Item, Load, Part
from streamsan._pipeline.outlet import Outlet
from streamsan._pipeline.progress import Progress
from streamsan._pipeline.registration import Registration
from streamsan._pipeline.results import Statistics
from streamsan._pipeline.sinks import Sink
from streamsan._pipeline.slots import Slot, is_shared
from streamsan._pipeline.timing import Sample


class Loop:
    """One run of a pipeline: its streams, slots and staging buffers."""

    def __init__(
        self,
        function: Callable[..., Any],
        device: torch.device,
        slots: Sequence[Slot],
        sink: Sink,
        progress: Progress,
        *,
        filled: int,
        pack: int | None = None,
        grad: bool = False,
        overlap: bool = True,
        register: bool = False,
    ) -> None:
        """Makes the streams; the slots' memory belongs to the current stream."""
        self.function, self.device, self.sink = function, device, sink
        self.progress, self.grad = progress, grad
        self.slots = deque(slots)
        self.slot_bytes = slots[0].size
        self.slot_count, self.pinned_bytes = len(slots), 0
        self.home = torch.cuda.current_stream(device)
        self.compute = torch.cuda.Stream(device)
        self.up, self.down = (torch.cuda.Stream(device) if overlap else self.compute for _ in range(2))
        self.overlap = overlap
        for stream in (self.up, self.compute, self.down):
            stream.wait_stream(self.home)
        layouts = Layouts()
        self.registration = Registration() if register else None
        self.intake = Intake(len(slots), self.slot_bytes, filled, pack, layouts, self.home, self.registration)
        self.outlet = Outlet(len(slots), sink, self.registration)
        self.layouts = layouts
        self.under_way: deque[Part] = deque()
        self.bytes_up = self.bytes_down = self.handed_out = 0
        self.sample = Sample()
        self.events: list[Events] = []
        self.after: torch.cuda.Event | None = None

    def run(self, items: Iterator[Any]) -> None:
        """Runs all items. Whatever happens, nothing is under way when it returns."""
        ahead = len(self.slots)
        ready: deque[Load] = deque()
        try:
            for load in self.intake.loads(items):
                ready.append(load)
                # Staging runs ahead of the copies by all slots but one: its buffer is free by then.
                if len(ready) >= ahead:
                    self._submit(ready.popleft())
            while ready:
                self._submit(ready.popleft())
            while self.under_way:
                self._hand_out()
        finally:
            self._end()

    def _submit(self, load: Load) -> None:
        """Submits one load to all streams."""
        if load.staged is not None:
            try:
                load.staged.result()
            except Exception as error:
                for item in load.live:
                    item.fail("upload", error)
        slot = self.slots[0]
        self.slots.rotate(-1)
        begin = 0
        while begin < len(load.items):
            # The device keeps to its slots by itself; this bounds what the host has to remember.
            while len(self.under_way) >= 2 * len(self.slots):
                self._hand_out()
            part = Part()
            self.under_way.append(part)
            begin = self._submit_part(load, slot, part, begin)

    def _submit_part(self, load: Load, slot: Slot, part: Part, begin: int) -> int:
        """Submits items of a load from one on; returns the first that is left for the next part."""
        if all([item.failed is not None for item in load.items[begin:]]):
            part.items = load.items[begin:]
            return len(load.items)
        part.events = events = self.events.pop() if self.events else _three_events()
        clock = slot.clock if begin == 0 and self.sample.wants(load.number) else None
        stage, end = "upload", len(load.items)
        try:
            if begin == 0:
                self._upload(load, slot, part, clock)
            stage = "function"
            end = self._compute(load, slot, part, begin, clock)
            stage = "download"
            self._download(load, slot, part, end == len(load.items), clock)
        except Exception as error:
            part.items = load.items[begin:end]
            for item in part.items:
                item.fail(stage, error)
            # What was submitted may still use the slot and its staging buffer.
            uploaded, computed, downloaded = events
            uploaded.record(self.up)
            if self.overlap:
                self.compute.wait_event(uploaded)
                computed.record(self.compute)
                self.down.wait_event(computed)
            downloaded.record(self.down)
        finally:
            torch.cuda.set_stream(self.home)
        slot.downloaded = events[2]
        return end

    def _upload(self, load: Load, slot: Slot, part: Part, clock: list[torch.cuda.Event] | None) -> None:
        assert part.events is not None
        torch.cuda.set_stream(self.up)
        if not self.home.query():
            # The source may have made the items with work that is still under way there.
            self.up.wait_stream(self.home)
        if slot.downloaded is not None and self.overlap:
            self.up.wait_event(slot.downloaded)
        if clock is not None:
            clock[0].record(self.up)
        if load.stage is not None:
            load.stage.busy = part.events[0]
        copy_load(load, slot)
        self.bytes_up += sum([layout.nbytes for layout in load.key])
        if clock is not None:
            clock[1].record(self.up)
        if load.stage is not None or self.overlap:
            part.events[0].record(self.up)

    def _compute(
        self, load: Load, slot: Slot, part: Part, begin: int, clock: list[torch.cuda.Event] | None
    ) -> int:
        """Calls the function for items from one on, until their results take too much room."""
        assert part.events is not None
        torch.cuda.set_stream(self.compute)
        if self.overlap:
            if self.after is not None:
                self.compute.wait_event(self.after)
            if begin == 0:
                self.compute.wait_event(part.events[0])
            elif slot.downloaded is not None:
                # The results of the load's items before take all the room there is, until they have left.
                self.compute.wait_event(slot.downloaded)
        self.after = None
        # The download of the slot's results before is waited for, by this stream or by the upload: they may
        # go, and this stream may use the memory again.
        slot.kept = kept = []
        if clock is not None:
            clock[2].record(self.compute)
        places = dict(zip(map(id, load.live), slot.views(load.key), strict=True))
        room, alone = slot.size, len(load.items) == 1
        end = begin
        with contextlib.nullcontext() if self.grad else torch.no_grad():
            while end < len(load.items) and (room > 0 or end == begin):
                item = load.items[end]
                end += 1
                part.items.append(item)
                if item.failed is None:
                    try:
                        room -= self._called(load, item, places[id(item)], slot, part, alone)
                        kept.append(item.found)
                    except Exception as error:
                        item.fail("function", error)
        return end

    def _called(
        self, load: Load, item: Item, inputs: list[torch.Tensor], slot: Slot, part: Part, alone: bool
    ) -> int:
        """Calls the function for one item; if device memory runs out, gives slots back and calls it again."""
        while True:
            try:
                return self._call(item, inputs, slot, part, alone)
            except torch.OutOfMemoryError:
                # What autograd has recorded by then cannot be taken back.
                if self.grad or len(self.slots) == 1:
                    raise
            # Here the exception has let go of what the function had made.
            self._give_slots_back()
            # The function may have changed its input.
            self._upload_again(load, item, inputs, part)

    def _give_slots_back(self) -> None:
        """Frees half of the slots that are not in use, and all results that have left the device."""
        self.down.synchronize()
        for _ in range(len(self.slots) // 2):
            self.slots.popleft()
        for slot in list(self.slots)[:-1]:
            slot.kept = None
        torch.cuda.empty_cache()

    def _upload_again(self, load: Load, item: Item, inputs: list[torch.Tensor], part: Part) -> None:
        assert part.events is not None
        leaves = item.leaves
        if load.stage is not None:
            leaves = load.stage.views(load.key)[load.live.index(item)]
            load.stage.busy = part.events[0]
        _copy(inputs, leaves)
        part.events[0].record(self.compute)

    def _call(self, item: Item, inputs: list[torch.Tensor], slot: Slot, part: Part, alone: bool) -> int:
        """Calls the function for one item; returns the bytes that are kept for its download."""
        # The slot's own tensors are for later items too: `requires_grad_`, `unsqueeze_` and an operation
        # in place that autograd records would stay with them.
        arguments = [leaf.detach() for leaf in inputs]
        item.result = self.function(arguments[0] if item.shape is ONLY else rebuild(item.shape, arguments))
        if item.result is arguments[0] and len(inputs) == 1 and _is_same(arguments[0], inputs[0]):
            # The usual case of a function in place.
            item.result, item.in_place = ONLY, True
            item.found, item.found_layout = inputs, item.layout
            return 0
        found: list[torch.Tensor] = []
        item.result = flatten(item.result, found)
        item.found = found
        item.in_place = len(found) == len(arguments) and all(
            [
                leaf is argument and _is_same(leaf, own)
                for leaf, argument, own in zip(found, arguments, inputs, strict=True)
            ]
        )
        if item.in_place:
            item.found, item.found_layout = inputs, item.layout
            return 0
        item.found_layout = self.layouts.of(found)
        size = 0
        # By position: a variable for the tensor would be one more that holds it.
        for position in range(len(found)):
            if not found[position].is_cuda:
                # The function may keep it, and change it for the next item. A page-locked one may still be
                # filled by a copy: that one is taken when the item is done.
                if not found[position].is_pinned():
                    found[position] = found[position].detach().clone()
                continue
            if found[position].device != slot.arena.device:
                raise ValueError(
                    f"the function returned a tensor on {found[position].device}, the pipeline is on "
                    f"{slot.arena.device}: bring it there in the function"
                )
            inside = slot.holds(found[position])
            shared = not inside and is_shared(found, position)
            if found[position].requires_grad:
                found[position] = found[position].detach()
            if inside and is_plain(found[position]):
                item.in_slot = True
                continue
            if not is_plain(found[position]):
                # The download would make it plain, in memory that nobody bounds.
                found[position] = found[position].resolve_conj().resolve_neg().contiguous()
            elif shared and alone:
                part.shared = True
            elif shared:
                # The function keeps it and may write to it for the next item, which is submitted first.
                found[position] = found[position].clone()
            size += found[position].nbytes
        return size

    def _download(
        self, load: Load, slot: Slot, part: Part, last: bool, clock: list[torch.cuda.Event] | None
    ) -> None:
        assert part.events is not None
        transfer = self.outlet.prepare(part, load, slot, last)
        if clock is not None:
            clock[3].record(self.compute)
        if self.overlap:
            part.events[1].record(self.compute)
            self.down.wait_event(part.events[1])
            torch.cuda.set_stream(self.down)
        if clock is not None:
            clock[4].record(self.down)
        if transfer.sources:
            _copy(transfer.targets, transfer.sources)
            self.bytes_down += transfer.nbytes
        if clock is not None:
            clock[5].record(self.down)
        part.events[2].record(self.down)
        if clock is not None:
            self.sample.took(clock, len(part.items))
        if part.shared:
            # The function keeps what it returned and may write to it for the next item.
            self.after = part.events[2]
        self.outlet.finish(part, transfer, part.events[2])

    def _hand_out(self) -> None:
        part = self.under_way.popleft()
        self.outlet.hand_out(part)
        self.handed_out += len(part.items)
        if part.events is not None and all([item.failed is None for item in part.items]):
            self._reuse(part.events)
        self.progress(len(self.sink.results), self.bytes_up + self.bytes_down)

    def _reuse(self, events: Events) -> None:
        """Takes the events of a part back, once nothing will ask for them."""
        held = any([slot.downloaded is events[2] for slot in self.slots]) or self.after is events[2]
        if not held and not self.intake.stages.uses(events[0]):
            self.events.append(events)

    def _end(self) -> None:
        """Leaves nothing under way, and gives the slots back to the stream that they came from."""
        self.intake.end()
        self.outlet.end()
        torch.cuda.set_stream(self.home)
        for stream in (self.up, self.compute, self.down):
            self.home.wait_stream(stream)
        for stream in (self.up, self.compute, self.down):
            stream.synchronize()
        self.pinned_bytes = self.intake.stages.size + self.outlet.stages.size
        if self.registration is not None:
            self.pinned_bytes += self.registration.size
            self.registration.release()
        self.slot_count = len(self.slots)
        self.sample.end()
        self.progress.end()
        self._let_go()

    def _let_go(self) -> None:
        """Frees memory and streams, though exceptions of items, which the caller keeps, lead here."""
        self.slots.clear()
        self.events.clear()
        self.under_way.clear()
        self.intake.stages.clear()
        self.outlet.stages.clear()
        self.up = self.compute = self.down = self.home
        for failed in self.sink.errors:
            clear_own_frames(failed.error)

    def statistics(self, begin: float) -> Statistics:
        """What was done since ``begin`` on the monotonic clock."""
        times = self.sample.medians()
        ideal, bound = self.sample.ideal(self.handed_out, self.slot_count)
        return Statistics(
            items=len(self.sink.results),
            failed=len(self.sink.errors),
            bytes_up=self.bytes_up,
            bytes_down=self.bytes_down,
            seconds=time.monotonic() - begin,
            slots=self.slot_count,
            device_bytes=self.slot_bytes * self.slot_count,
            pinned_bytes=self.pinned_bytes,
            upload=times[0],
            function=times[1],
            download=times[2],
            ideal=ideal,
            bound=bound,
        )


def _is_same(leaf: torch.Tensor, own: torch.Tensor) -> bool:
    """Whether a tensor that was given to the function still is what lies in the slot."""
    return (
        leaf.data_ptr() == own.data_ptr()
        and leaf.dtype is own.dtype
        and leaf.shape == own.shape
        and is_plain(leaf)
    )


def copy_load(load: Load, slot: Slot) -> None:
    """Copies a load to a slot, on the current stream."""
    if load.stage is not None:
        slot.span(load.size).copy_(load.stage.span(load.size), non_blocking=True)
    else:
        leaves = [leaf for item in load.live for leaf in item.leaves]
        _copy([view for tensors in slot.views(load.key) for view in tensors], leaves)


def _copy(targets: Sequence[torch.Tensor], sources: Sequence[torch.Tensor]) -> None:
    """Copies between the device and page-locked memory."""
    if len(targets) == 1:
        targets[0].copy_(sources[0], non_blocking=True)
    else:
        torch._foreach_copy_(list(targets), list(sources), non_blocking=True)


def _three_events() -> Events:
    return torch.cuda.Event(), torch.cuda.Event(), torch.cuda.Event()
