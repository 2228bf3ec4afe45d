"""``streamsan.pipeline``."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any

import torch

from streamsan import _core
from streamsan._pipeline.chunks import Chunks
from streamsan._pipeline.failures import PipelineError, failed_items
from streamsan._pipeline.items import ALIGNMENT, Layouts, flatten
from streamsan._pipeline.progress import Progress
from streamsan._pipeline.results import Results, Statistics
from streamsan._pipeline.run import Loop
from streamsan._pipeline.sinks import PlainSink, Sink
from streamsan._pipeline.slots import Slot

_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_CHUNK = 32 << 20
"""Bytes of a slot for items that are cut: as fast as larger ones, and others need not wait for long."""

_LITTLE = 1 << 30
"""Bytes that are taken without asking the driver how much is free: to ask can take a millisecond."""


def pipeline(
    function: Callable[..., Any],
    tensors: Iterable[Any],
    *,
    slots: int | None = None,
    memory: int | str | None = None,
    item_bytes: int | None = None,
    out: Callable[[int, Any], None] | Sequence[Any] | None = None,
    progress: bool = True,
    device: torch.device | str | int | None = None,
    grad: bool = False,
    overlap: bool = True,
    pack: int | None = None,
    chunk: bool = False,
    register: bool = False,
) -> Results:
    """Applies a torch function to any number of CPU tensors on the GPU, overlapped and in bounded memory.

    While one item is computed, the next one is uploaded and the previous one is downloaded. Device memory is
    that of the slots, allocated once, plus what the function itself makes. All order comes from events: no
    `record_stream`, no synchronize between items.

    Args:
        function: Called with one item whose tensors are on the device, on a stream of the pipeline. It may
            change them in place. What it returns, any nesting of tensors, is downloaded. It must not keep its
            input beyond the call: a later item gets the same memory. If it runs out of device memory, slots
            are given back and it is called again for the same item (not with ``grad``).
        tensors: The items: CPU tensors, or tuples, lists, dicts and dataclasses of them; any iterable, also a
            generator or a DataLoader. Page-locked tensors are copied from where they are; others go through a
            staging buffer. No tensor of an item may be changed before its result is there.
        slots: Items on the device at once. By default four, fewer if they do not fit into ``memory``.
        memory: Device memory for the slots, in bytes or as text (``"2GiB"``). By default half of what is
            free.
        item_bytes: Size of a slot, for items of different sizes. By default the size of the first item. Each
            tensor of an item takes a multiple of 512 bytes.
        out: Where the results go: a sequence with the tensors of each item, filled in place (fastest if they
            are page-locked), or a function that is called with index and result, in order. By default new
            tensors.
        progress: Whether to show progress on a terminal.
        device: The device; by default the current one.
        grad: Whether autograd records what the function does.
        overlap: Whether to use three streams; with one, nothing overlaps.
        pack: Small items that share one upload and, where they can, one download, at most; each is still
            given to the function alone. By default as many as make a copy worth its start.
        chunk: Whether items larger than a slot are cut into runs of rows, along the first dimension, and
            their results joined again. Only for functions that compute each row of their result from the
            same row of the item. Slots are of at most 32 MiB then, or what ``item_bytes`` says.
        register: Whether pageable memory of items and targets is page-locked where it is, for the time of the
            call, instead of staged. That takes about as long as to stage it four times, so it is for memory
            whose items come several times; for several calls see `page_lock`. Memory that cannot be locked,
            and memory of less than 1 MiB, is staged. All of it stays locked until the call ends.

    Returns:
        The results in the order of the items, with ``statistics``.

    Raises:
        PipelineError: if items failed: it names them and has the results of all others; or if the slots do
            not fit.
        ValueError: if an argument makes no sense.

    Example:
        >>> import streamsan, torch
        >>> items = (torch.full((1000,), float(item)) for item in range(100))
        >>> results = streamsan.pipeline(lambda item: item.mul_(2).add_(1), items)  # doctest: +CUDA
        >>> results[99][0].item()  # doctest: +CUDA
        199.0
    """
    if not callable(function):
        raise TypeError(f"the first argument of a pipeline is its function, not {type(function).__name__}")
    chosen = chosen_device(device)
    if slots is not None and slots < 1:
        raise ValueError(f"slots={slots}: a pipeline needs at least one slot")
    if pack is not None and pack < 1:
        raise ValueError(f"pack={pack}: at least one item travels at a time")
    total = len(tensors) if isinstance(tensors, Sized) else None
    if isinstance(out, Sized) and total is not None and len(out) != total:
        raise ValueError(f"`out` has {len(out)} places for {total} items")
    iterator = iter(tensors)
    begin = time.monotonic()
    with torch.cuda.device(chosen):
        budget = _bytes(memory)
        size, iterator = slot_size(item_bytes, iterator)
        if size is None:
            return _nothing()
        if chunk:
            # The pieces of an item are items of their own, and nobody knows how many there are.
            size = _chunk_size(size, slots, budget) if item_bytes is None else size
            plan = _plan(slots, pack if item_bytes is None else 1, size, budget, None)
        else:
            plan = _plan(slots, pack, size, budget, total)
        count, together, filled = plan
        plain = PlainSink(out)
        sink: Sink = plain
        if chunk:
            chunks = Chunks(size * together, plain)
            sink, iterator = chunks, chunks.cut(iterator)
        loop = Loop(
            function,
            chosen,
            # Nobody but the loop holds them: it may give some back.
            [Slot(arena) for arena in allocate_slots(count, size * together, chosen, fewer=slots is None)],
            sink,
            Progress(progress, total),
            filled=filled,
            pack=pack,
            grad=grad,
            overlap=overlap,
            register=register,
        )
        loop.run(iterator)
    sink.results.statistics = loop.statistics(begin)
    if sink.errors:
        raise failed_items(sink.errors, sink.results) from sink.errors[0].error
    return sink.results


def chosen_device(device: torch.device | str | int | None) -> torch.device:
    """The device that was asked for, or the current one.

    Raises:
        PipelineError: if there is none.
        ValueError: if it is no CUDA device.
    """
    if not torch.cuda.is_available():
        raise PipelineError(
            "a pipeline needs a CUDA device, and there is none: without one, `streamsan run` the script",
            [],
            _nothing(),
        )
    chosen = torch.device("cuda", torch.cuda.current_device()) if device is None else torch.device(device)
    if chosen.type != "cuda":
        raise ValueError(f"a pipeline needs a CUDA device, not {chosen}")
    return chosen


def _nothing() -> Results:
    results = Results()
    results.statistics = Statistics(0, 0, 0, 0, 0.0, 0, 0, 0)
    return results


def slot_size(item_bytes: int | None, iterator: Iterator[Any]) -> tuple[int | None, Iterator[Any]]:
    """Bytes of a slot, from the first item if nothing was said; `None` if there is no item."""
    if item_bytes is not None:
        return max(-(-item_bytes // ALIGNMENT) * ALIGNMENT, 1), iterator
    try:
        first = next(iterator)
    except StopIteration:
        return None, iterator
    leaves: list[torch.Tensor] = []
    flatten(first, leaves)
    return max(Layouts().of(leaves).size, 1), itertools.chain([first], iterator)


def _chunk_size(size: int, slots: int | None, memory: int | None) -> int:
    """Bytes of a slot for items that may be cut, where the first item needs ``size`` bytes."""
    room = _CHUNK if memory is None else min(_CHUNK, memory // (slots or 4))
    return max(min(size, room // ALIGNMENT * ALIGNMENT), ALIGNMENT)


def _plan(
    slots: int | None, pack: int | None, size: int, memory: int | None, total: int | None
) -> tuple[int, int, int]:
    """How many slots, how many items of ``size`` bytes go in each, and the bytes that fill a load well."""
    if memory is not None:
        budget = memory
    elif size * (slots or 4) <= _LITTLE:
        budget = _LITTLE
    else:
        budget = torch.cuda.mem_get_info()[0] // 2
    try:
        count, together, filled = _core.plan_pipeline(size, budget, total, slots)
    except ValueError as error:
        raise PipelineError(f"{error} (memory=, slots=; chunk=True cuts items)", [], _nothing()) from None
    return count, together if pack is None else min(pack, together), filled


def allocate_slots(count: int, size: int, device: torch.device, *, fewer: bool = False) -> list[torch.Tensor]:
    """Allocates the slots, or as many as there is memory for if ``fewer`` will do.

    Raises:
        PipelineError: if they do not fit.
    """
    arenas: list[torch.Tensor] = []
    try:
        while len(arenas) < count:
            arenas.append(torch.empty(size, dtype=torch.uint8, device=device))
    except torch.OutOfMemoryError as error:
        if not (fewer and arenas):
            raise PipelineError(
                f"{count} slots of {size} bytes could not be allocated, {len(arenas)} could: lower "
                "memory= or slots=, or cut the items with chunk=True",
                [],
                _nothing(),
            ) from error
        if len(arenas) > 1:
            # The function needs memory too.
            arenas.pop()
    return arenas


def _bytes(memory: int | str | None) -> int | None:
    """Bytes of ``"2GiB"``, ``"500 MB"`` or a number."""
    if memory is None or isinstance(memory, int):
        return memory
    match = re.fullmatch(r"\s*([0-9.]+)\s*([kmg]?i?)b?\s*", memory.lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"memory={memory!r} is no size: write for example '2GiB' or 2 * 1024**3")
    return int(float(match[1]) * _UNITS[match[2]])
