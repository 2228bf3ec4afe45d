"""Graphs in the further runs of `streamsan run --confirm`: what a launch writes, and what its capture did.

It can miss: memory that is written by what is no operator, such as kernels that were compiled for the
program, and memory from before the capture once the tensor that was written to is gone.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves

from streamsan.torch.snapshots import Bytes, bytes_of

# Of one launch.
_MOST: Final = 32 << 20


class Graph:
    """What is known of one graph."""

    def __init__(self) -> None:
        """Nothing is captured yet."""
        self.findings: list[int] = []
        """Findings whose two operations are nodes of it."""
        self.firsts: dict[int, torch.cuda.Event] = {}
        """Events of the capture: after the first operation of a finding."""
        self.is_late = False
        """Whether it has a node that spins."""
        self._own: list[Bytes] = []
        self._given: list[weakref.ref[torch.Tensor]] = []

    def note(self, func: Any, out: Any) -> None:
        """Notes what an operator writes at each launch."""
        returns = func._schema.returns
        if any(value.alias_info is not None and not value.alias_info.is_write for value in returns):
            # A view writes nothing.
            return
        tensors = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        if any(value.alias_info is not None for value in returns):
            self._given += [weakref.ref(tensor) for tensor in tensors]
        else:
            # The graph's own memory stays where it is, whatever becomes of the tensor.
            self._own += bytes_of(tensor for tensor in tensors if tensor.is_cuda)

    def written(self) -> list[Bytes]:
        """The memory that a launch writes, the last first."""
        given = [tensor for reference in self._given if (tensor := reference()) is not None]
        found: list[Bytes] = []
        room = _MOST
        for part in dict.fromkeys((*reversed(list(bytes_of(given))), *reversed(self._own))):
            room -= part.length
            if room < 0:
                break
            found.append(part)
        return found


class Graphs:
    """Watches captures and launches of the process."""

    def __init__(
        self, before_capture: Callable[[], None], launch: Callable[[Graph, Callable[[], None]], None]
    ) -> None:
        """Takes what is called before a capture begins, and what makes a launch."""
        self._before_capture = before_capture
        self._launch = launch
        self._known: weakref.WeakKeyDictionary[Any, Graph] = weakref.WeakKeyDictionary()
        # torch has one capture at a time.
        self._capturing: Graph | None = None

    def captured_by_current_stream(self) -> Graph | None:
        """The graph that work on the current stream belongs to."""
        if self._capturing is None or not torch.cuda.is_current_stream_capturing():
            return None
        return self._capturing

    def watch(self) -> None:
        """Stands in front of torch's methods."""
        kind: Any = torch.cuda.CUDAGraph
        begin, end, replay = kind.capture_begin, kind.capture_end, kind.replay

        def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> None:
            self._before_capture()
            begin(graph, *args, **kwargs)
            self._capturing = self._known[graph] = Graph()

        def capture_end(graph: Any) -> None:
            self._capturing = None
            end(graph)

        def launch(graph: Any) -> None:
            self._launch(self._known.get(graph) or Graph(), lambda: replay(graph))

        kind.capture_begin, kind.capture_end, kind.replay = capture_begin, capture_end, launch
