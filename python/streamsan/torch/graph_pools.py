"""Memory of graphs that is handed out while nothing is captured.

A graph keeps the pool that its memory comes from, for as long as it lives. The inputs of the graphs that
`torch.compile(mode="reduce-overhead")` makes, and the results of its warm-up, come from there too, by a call
that redirects the allocations of a thread. A replay may use such memory whatever was freed since, which is
what it is kept for; so the recorder is told.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, Final

import torch

from streamsan import _core

_BEGIN: Final = ("_cuda_beginAllocateCurrentThreadToPool", "_cuda_beginAllocateToPool")
_END: Final = "_cuda_endAllocateToPool"
_pools: Final[set[tuple[int, int]]] = set()
"""Ids of the pools that graphs were captured with."""


class _Redirected(threading.local):
    """Pools of graphs that this thread's allocations are redirected to."""

    def __init__(self) -> None:
        self.pools: list[tuple[int, int]] = []


_redirected: Final = _Redirected()


def watch_graph_pools() -> None:
    """Has the recorder told of allocations from the pools of graphs."""
    graph: Any = torch.cuda.CUDAGraph
    end = graph.capture_end

    @functools.wraps(end)
    def ended(self: Any) -> None:
        end(self)
        _pools.add(tuple(self.pool()))

    graph.capture_end = ended
    native: Any = torch._C
    for name in _BEGIN:
        _replace(name, _begin(getattr(native, name, None)))
    _replace(_END, _end(getattr(native, _END, None)))


def _replace(name: str, function: Any) -> None:
    """Replaces a function of torch's where it is defined and where it was imported."""
    for module in (torch._C, torch.cuda.memory):
        if function is not None and hasattr(module, name):
            setattr(module, name, function)


def _begin(begin: Any) -> Any:
    if begin is None:
        return None

    @functools.wraps(begin)
    def begun(device: int, pool: tuple[int, int]) -> Any:
        answer = begin(device, pool)
        if pool in _pools:
            _redirected.pools.append(pool)
            _core.graph_memory(True)
        return answer

    return begun


def _end(end: Any) -> Any:
    if end is None:
        return None

    @functools.wraps(end)
    def ended(device: int, pool: tuple[int, int]) -> Any:
        if pool in _redirected.pools:
            _redirected.pools.remove(pool)
            _core.graph_memory(False)
        return end(device, pool)

    return ended
