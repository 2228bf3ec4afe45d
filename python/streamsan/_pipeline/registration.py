"""Host memory that is page-locked where it is, and unlocked again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from streamsan._errors import StreamsanError
from streamsan._pipeline.items import flatten, is_plain

_LEAST = 1 << 20
"""Bytes. Smaller memory may share pages with other memory, and to lock it costs more than to copy it."""


class Registration:
    """Memory that was page-locked in place, by storage. It is kept alive until it is unlocked."""

    def __init__(self) -> None:
        """Starts without any."""
        self._held: dict[int, torch.UntypedStorage] = {}
        self._refused: set[int] = set()

    def lock(self, leaf: torch.Tensor) -> bool:
        """Page-locks the memory of a tensor unless it is; returns whether copies from it do not block."""
        if leaf.device.type != "cpu" or leaf.layout is not torch.strided or not is_plain(leaf):
            return False
        if leaf.is_pinned():
            return True
        storage = leaf.untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
        if size < _LEAST or address in self._refused:
            return False
        if int(torch.cuda.cudart().cudaHostRegister(address, size, 0)) != 0:
            self._refused.add(address)
            _forget_error()
            return False
        self._held[address] = storage
        return True

    def release(self) -> None:
        """Unlocks all. Copies from and to the memory must have finished."""
        while self._held:
            address, _ = self._held.popitem()
            torch.cuda.cudart().cudaHostUnregister(address)

    @property
    def size(self) -> int:
        """Bytes that are locked."""
        return sum(storage.nbytes() for storage in self._held.values())


@contextlib.contextmanager
def page_lock(*values: Any) -> Iterator[None]:
    """Page-locks tensors where they are, for as long as the block lasts.

    Copies between them and a device are asynchronous and need no staging, as if they had been made with
    ``pin_memory=True``. To lock memory takes about as long as to copy it four times, so this is for tensors
    that are copied more often than that: sources and targets of several pipelines, weights that are uploaded
    again and again.

    Args:
        values: Tensors of the CPU, and any nesting of them. Iterables are gone through.

    Raises:
        StreamsanError: if memory cannot be locked: it is smaller than 1 MiB, not contiguous, mapped
            read-only, or the system refuses. Nothing is locked then.

    Example:
        >>> import streamsan, torch
        >>> items = list(torch.ones(16, 1 << 20))
        >>> with streamsan.page_lock(items):  # doctest: +CUDA
        ...     once = streamsan.pipeline(lambda item: item.mul_(2), items)
        ...     twice = streamsan.pipeline(lambda item: item.mul_(3), items)
        >>> items[0].is_pinned()  # doctest: +CUDA
        False
    """
    if not torch.cuda.is_available():
        raise StreamsanError("memory is page-locked for a CUDA device, and there is none")
    registration = Registration()
    try:
        for number, leaf in enumerate(_tensors(values)):
            if not registration.lock(leaf):
                raise StreamsanError(
                    f"tensor {number} ({leaf.dtype} {list(leaf.shape)} on {leaf.device}) cannot be "
                    "page-locked where it is: it must be contiguous memory of the CPU of at least 1 MiB that "
                    "may be written to; others are staged by a pipeline, or made with pin_memory=True"
                )
        yield
    finally:
        if registration.size:
            # Copies that are still under way would read memory that is not locked any more.
            torch.cuda.synchronize()
        registration.release()


def _tensors(values: Iterable[Any]) -> list[torch.Tensor]:
    leaves: list[torch.Tensor] = []
    flatten(list(values), leaves)
    return leaves


def _forget_error() -> None:
    """Takes the error of a refused call away: torch would raise it at its next kernel."""
    with contextlib.suppress(RuntimeError):
        torch.empty(1, device="cuda").fill_(0)
