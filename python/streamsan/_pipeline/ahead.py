"""``streamsan.prefetch``: the way in of a pipeline alone, for loops that are the program's own."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from streamsan._pipeline.api import allocate_slots, chosen_device, slot_size
from streamsan._pipeline.intake import Intake
from streamsan._pipeline.items import Layouts, rebuild
from streamsan._pipeline.load import Item, Load
from streamsan._pipeline.run import copy_load
from streamsan._pipeline.slots import Slot


def prefetch(
    batches: Iterable[Any],
    *,
    slots: int = 3,
    item_bytes: int | None = None,
    device: torch.device | str | int | None = None,
) -> Iterator[Any]:
    """Gives batches on the device; the next ones are uploaded while the program works on one.

    Device memory is that of the slots. A batch lies in its slot until the next one is asked for: by then the
    program has to have enqueued all that reads it, backward included, on the stream that is current when it
    asks. The upload into the slot waits for that on the device; the host waits for nothing.

    Args:
        batches: Tensors of the CPU, or any nesting of them; a DataLoader for example. Page-locked ones are
            copied from where they are and must keep their values until the host has waited for the work on
            that batch (a synchronize of the device or of an event, `.item()` of its result). Others must keep
            them until the batch was given.
        slots: Batches on the device at once: the one in use and those that are uploaded ahead.
        item_bytes: Size of a slot, for batches of different sizes. By default the size of the first batch.
        device: The device; by default the current one.

    Raises:
        PipelineError: if there is no CUDA device, or not enough memory for the slots.
        Exception: what the source raises, or an upload, where that batch would come.

    Example:
        >>> import streamsan, torch
        >>> batches = (torch.full((8,), float(step)) for step in range(3))
        >>> for batch in streamsan.prefetch(batches):  # doctest: +CUDA
        ...     print(batch.sum().item())
        0.0
        8.0
        16.0
    """
    if slots < 2:
        raise ValueError(f"slots={slots}: with one slot nothing can be uploaded ahead")
    chosen = chosen_device(device)
    return _batches(iter(batches), slots, item_bytes, chosen)


def _batches(
    iterator: Iterator[Any], count: int, item_bytes: int | None, device: torch.device
) -> Iterator[Any]:
    with torch.cuda.device(device):
        size, iterator = slot_size(item_bytes, iterator)
        if size is None:
            return
        slots = [Slot(arena) for arena in allocate_slots(count, size, device)]
        home = torch.cuda.current_stream(device)
        up = torch.cuda.Stream(device)
    up.wait_stream(home)
    # Before the first upload one more load than there are slots is staged.
    intake = Intake(count + 1, size, size, 1, Layouts(), home)
    uploaded = [torch.cuda.Event() for _ in slots]
    used = [torch.cuda.Event() for _ in slots]
    ready: deque[tuple[Item, int, list[torch.Tensor]]] = deque()

    def give() -> Iterator[Any]:
        item, turn, tensors = ready.popleft()
        if item.failed is not None:
            raise item.failed.error
        torch.cuda.current_stream(device).wait_event(uploaded[turn])
        # The slot's own tensors are for later batches too.
        yield rebuild(item.shape, [tensor.detach() for tensor in tensors])
        # Whatever reads the batch was enqueued by now, on the stream that is current here.
        used[turn].record(torch.cuda.current_stream(device))
        slots[turn].downloaded = used[turn]

    def upload(load: Load) -> None:
        turn = load.number % count
        slot, item = slots[turn], load.items[0]
        tensors: list[torch.Tensor] = []
        if load.staged is not None:
            load.staged.result()
        if item.failed is None:
            with torch.cuda.stream(up):
                if not home.query():
                    # The source may have made the batch with work that is still under way there.
                    up.wait_stream(home)
                if slot.downloaded is not None:
                    up.wait_event(slot.downloaded)
                copy_load(load, slot)
                uploaded[turn].record(up)
            tensors = slot.views(load.key)[0]
            if load.stage is not None:
                load.stage.busy = uploaded[turn]
        ready.append((item, turn, tensors))

    staged: deque[Load] = deque()
    loads = intake.loads(iterator)
    try:
        while True:
            # Of two loads that wait for their upload, one is staged while the other is uploaded. With more, a
            # staging buffer would be filled again before its upload was submitted.
            while len(staged) < 2 and len(staged) + len(ready) <= count:
                load = next(loads, None)
                if load is None:
                    break
                staged.append(load)
            if staged and len(ready) < count:
                upload(staged.popleft())
                continue
            if not ready:
                return
            yield from give()
    finally:
        intake.end()
        for stream in (up, torch.cuda.current_stream(device)):
            home.wait_stream(stream)
        up.synchronize()
