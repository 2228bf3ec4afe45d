"""``streamsan.pipeline``."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any

import torch

from streamsan._pipeline.failures import PipelineError, failed_items
from streamsan._pipeline.items import ALIGNMENT, flatten, places, signature
from streamsan._pipeline.progress import Progress
from streamsan._pipeline.results import Results, Statistics
from streamsan._pipeline.run import Loop
from streamsan._pipeline.slots import Slot

_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_SLOTS = 4
"""Three slots keep three stages busy; the fourth hides the hand-over between them."""

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
    overlap: bool | None = None,
) -> Results:
    """Applies a torch function to any number of CPU tensors on the GPU, overlapped and in bounded memory.

    While one item is computed, the next one is uploaded and the previous one is downloaded. Device memory is
    that of the slots, allocated once, plus what the function itself makes. All order comes from events: no
    `record_stream`, no synchronize between items.

    Args:
        function: Called with one item whose tensors are on the device, on a stream of the pipeline. It may
            change them in place. What it returns, any nesting of tensors, is downloaded. It must not keep its
            input beyond the call: a later item gets the same memory.
        tensors: The items: CPU tensors, or tuples, lists, dicts and dataclasses of them; any iterable, also a
            generator or a DataLoader. Page-locked tensors are copied from where they are and must not be
            changed before their result is there; others go through a staging buffer.
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
        overlap: Whether to use three streams. By default what is faster for these items, decided after a few.

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
    if not torch.cuda.is_available():
        raise PipelineError(
            "a pipeline needs a CUDA device, and there is none: without one, `streamsan run` the script",
            [],
            _nothing(),
        )
    chosen = torch.device("cuda", torch.cuda.current_device()) if device is None else torch.device(device)
    if chosen.type != "cuda":
        raise ValueError(f"a pipeline needs a CUDA device, not {chosen}")
    if slots is not None and slots < 1:
        raise ValueError(f"slots={slots}: a pipeline needs at least one slot")
    total = len(tensors) if isinstance(tensors, Sized) else None
    if isinstance(out, Sized) and total is not None and len(out) != total:
        raise ValueError(f"`out` has {len(out)} places for {total} items")
    iterator = iter(tensors)
    begin = time.monotonic()
    with torch.cuda.device(chosen):
        size, iterator = _slot_size(item_bytes, iterator)
        if size is None:
            return _nothing()
        count = _slot_count(slots, size, _bytes(memory), total)
        arenas = _arenas(count, size, chosen)
        loop = Loop(
            function,
            chosen,
            [Slot(arena, timed=True) for arena in arenas],
            out,
            Progress(progress, total),
            grad,
            overlap,
        )
        loop.run(iterator)
    loop.results.statistics = loop.statistics(begin, size)
    if loop.errors:
        raise failed_items(loop.errors, loop.results) from loop.errors[0].error
    return loop.results


def _nothing() -> Results:
    results = Results()
    results.statistics = Statistics(0, 0, 0, 0, 0.0, 0, 0, 0)
    return results


def _slot_size(item_bytes: int | None, iterator: Iterator[Any]) -> tuple[int | None, Iterator[Any]]:
    """Bytes of a slot, from the first item if nothing was said; `None` if there is no item."""
    if item_bytes is not None:
        return max(-(-item_bytes // ALIGNMENT) * ALIGNMENT, 1), iterator
    try:
        first = next(iterator)
    except StopIteration:
        return None, iterator
    leaves: list[torch.Tensor] = []
    flatten(first, leaves)
    return max(places(signature(leaves))[1], 1), itertools.chain([first], iterator)


def _slot_count(slots: int | None, size: int, memory: int | None, total: int | None) -> int:
    """How many slots there are room for, up to what was asked for."""
    if memory is not None:
        budget = memory
    elif size * (slots or _SLOTS) <= _LITTLE:
        budget = _LITTLE
    else:
        budget = torch.cuda.mem_get_info()[0] // 2
    fit = budget // size
    if fit < 1 or (slots is not None and slots > fit):
        wanted = slots or 1
        raise PipelineError(
            f"{wanted} slots of {size} bytes do not fit into {budget} bytes of device memory, {fit} do: "
            "raise memory=, ask for fewer slots, or split the items",
            [],
            _nothing(),
        )
    if slots is not None:
        return slots
    return max(1, min(_SLOTS, fit, total if total is not None else _SLOTS))


def _arenas(count: int, size: int, device: torch.device) -> list[torch.Tensor]:
    try:
        return [torch.empty(size, dtype=torch.uint8, device=device) for _ in range(count)]
    except torch.OutOfMemoryError as error:
        raise PipelineError(
            f"{count} slots of {size} bytes could not be allocated: lower memory= or slots=",
            [],
            _nothing(),
        ) from error


def _bytes(memory: int | str | None) -> int | None:
    """Bytes of ``"2GiB"``, ``"500 MB"`` or a number."""
    if memory is None or isinstance(memory, int):
        return memory
    match = re.fullmatch(r"\s*([0-9.]+)\s*([kmg]?i?)b?\s*", memory.lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"memory={memory!r} is no size: write for example '2GiB' or 2 * 1024**3")
    return int(float(match[1]) * _UNITS[match[2]])
