"""Streams by their raw handles, and which objects of the program stand for them."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Final

import torch

from streamsan import _core


class _Life:
    """Held by a stream object, so that its end is seen: weak references to a stream itself go wrong."""


_objects = itertools.count(1)
_alive: dict[tuple[int, int], list[weakref.ref[_Life]]] = {}
_LIFE: Final = "_streamsan_life"
_unnamed: set[tuple[int, int]] = set()


def handle(stream: torch.Stream) -> tuple[int, int] | None:
    """Returns the raw handle of a CUDA stream and its device; None for a stream of something else."""
    if not isinstance(stream, torch.cuda.Stream):
        if stream.device.type != "cuda":
            return None
        stream = torch.cuda.Stream(
            stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type
        )
    return stream.cuda_stream, stream.device_index


def tell_record_stream(tensor: torch.Tensor, stream: torch.Stream | None = None, **kwargs: Any) -> None:
    """Records that `record_stream` is called here, whether it will succeed or not.

    With `backend:cudaMallocAsync` it has an effect on memory that is no block of torch's allocator:
    nothing is said.
    """
    if tensor.is_cuda and torch.cuda.get_allocator_backend() != "native":
        return
    found = handle(stream if stream is not None else kwargs["s"])
    if found is not None:
        _core.record_stream(tensor, *found)


def tell_new(stream: torch.Stream) -> None:
    """Records that the program made this stream object, and names it after the variable it is assigned to.

    An object that takes over the stream of one that is gone shares it with nobody.
    """
    found = handle(stream)
    if found is None:
        return
    others = [life for life in _alive.get(found, ()) if life() is not None]
    _core.stream_object(*found, next(_objects), len(others))
    life = _Life()
    try:
        setattr(stream, _LIFE, life)
    except AttributeError:
        others.clear()  # An object without attributes: its end is not seen, so it is taken to be gone.
    else:
        others.append(weakref.ref(life))
    _alive[found] = others
    if not _core.name_stream_here(*found):
        _unnamed.add(found)


def name_by_sight(expression: str, found: tuple[int, int]) -> None:
    """Names a stream after the first expression that gives it, if its creation gave it no name."""
    if found in _unnamed:
        _unnamed.discard(found)
        _core.name_stream(*found, expression, False)
