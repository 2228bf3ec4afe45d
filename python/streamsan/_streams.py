"""Managed streams: the waits and the lifetimes of tensors between streams, by declaration.

A managed stream knows which streams it comes after. Work that is run on it waits for all of them, and for the
stream that made each tensor it is given; tensors it is given are kept until it is done with them. Nothing is
synchronized and `record_stream` is not needed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any, TypeVar

import torch
from torch.utils.weak import WeakIdKeyDictionary

from streamsan import _core
from streamsan._errors import StreamsanError
from streamsan._marks import name as set_name

Result = TypeVar("Result")


class GraphError(StreamsanError):
    """A stream graph cannot be made: a name is taken or unknown, or streams wait for each other."""


class ManagedStream:
    """A CUDA stream with a name and declared dependencies.

    Attributes:
        name: Its name, also in reports.
        after: The managed streams that it comes after.
        stream: The torch stream.

    Example:
        >>> import streamsan, torch
        >>> load = streamsan.ManagedStream("load")  # doctest: +CUDA
        >>> infer = streamsan.ManagedStream("infer", after=[load])  # doctest: +CUDA
        >>> batch = torch.ones(1000, pin_memory=True)  # doctest: +CUDA
        >>> on_device = load.run(lambda: batch.to("cuda", non_blocking=True))  # doctest: +CUDA
        >>> result = infer.run(lambda x: x * 2, on_device)  # doctest: +CUDA
        >>> infer.result(result)[0].item()  # doctest: +CUDA
        2.0
    """

    def __init__(
        self,
        name: str,
        after: Iterable[ManagedStream] = (),
        *,
        device: torch.device | str | int | None = None,
        priority: int = 0,
    ) -> None:
        """Makes the stream.

        Args:
            name: Its name.
            after: The streams whose work it waits for. They exist already, so no cycle can be declared here;
                a `StreamGraph` takes declarations in any order and refuses cycles.
            device: Its device; by default the current one.
            priority: CUDA's priority; lower is more urgent.
        """
        self.name = name
        self.after = tuple(after)
        for other in self.after:
            if not isinstance(other, ManagedStream):
                raise TypeError(f"after= of stream {name!r} holds {other!r}, which is no ManagedStream")
        self.stream = torch.cuda.Stream(device, priority=priority)
        set_name(self.stream, name)
        self._last: torch.cuda.Event | None = None
        self._kept: deque[tuple[torch.cuda.Event, list[torch.Tensor]]] = deque()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        names = ", ".join(repr(other.name) for other in self.after)
        return f"ManagedStream({self.name!r}, after=[{names}])"

    def run(self, function: Callable[..., Result], *arguments: Any, **keywords: Any) -> Result:
        """Calls a function with this stream as the current one.

        First the stream is made to wait for the streams that it comes after, for the stream that was
        current, and for the managed streams that made the tensors among the arguments. The arguments are
        kept until the work that was enqueued is done, so that they may be dropped at any time.

        Args:
            function: What to do. It may be called from any thread.
            arguments: Its arguments.
            keywords: Its keyword arguments.

        Returns:
            What the function returns. Give tensors in it to another managed stream, or see `result`.
        """
        used: list[torch.Tensor] = []
        _collect((arguments, keywords), used)
        self._enter(used)
        try:
            with torch.cuda.stream(self.stream):
                value = function(*arguments, **keywords)
        finally:
            # Whatever was enqueued before a failure uses the arguments too.
            done = torch.cuda.Event()
            done.record(self.stream)
            self._last = done
            with self._lock:
                self._kept.append((done, used))
        made: list[torch.Tensor] = []
        _collect(value, made)
        for tensor in made:
            _MAKERS[tensor] = (self, done)
        return value

    def result(self, value: Result) -> Result:
        """Makes the current stream wait for this stream, and returns ``value`` for use there.

        The memory of tensors in it comes back only when the host has seen the current stream pass the point
        at which they are dropped. Give the last use of a large tensor to a managed stream where that
        matters.
        """
        current = torch.cuda.current_stream(self.stream.device)
        if self._last is not None:
            current.wait_event(self._last)
        tensors: list[torch.Tensor] = []
        _collect(value, tensors)
        for tensor in tensors:
            if tensor.is_cuda:
                # The current stream is nobody's to watch: only the allocator can see when it is done.
                tensor.record_stream(current)
        return value

    def synchronize(self) -> None:
        """Blocks the host until the stream has done all its work."""
        self.stream.synchronize()
        self._release()

    def _enter(self, used: list[torch.Tensor]) -> None:
        self._release()
        current = torch.cuda.current_stream(self.stream.device)
        if current != self.stream:
            self.stream.wait_stream(current)
        for other in self.after:
            if other._last is not None:
                self.stream.wait_event(other._last)
        for tensor in used:
            maker = _maker(tensor)
            if maker is not None and maker[0] is not self and maker[0] not in self.after:
                self.stream.wait_event(maker[1])

    def _release(self) -> None:
        """Drops arguments of finished work: the host has seen it finish, their memory may be used at once."""
        with self._lock:
            while self._kept and self._kept[0][0].query():
                self._kept.popleft()


_MAKERS: MutableMapping[torch.Tensor, tuple[ManagedStream, torch.cuda.Event]] = WeakIdKeyDictionary()
"""Which managed stream made a tensor, and when it was done."""


def _maker(tensor: torch.Tensor) -> tuple[ManagedStream, torch.cuda.Event] | None:
    """Returns who made a tensor, or the tensor that it is a view of."""
    maker = _MAKERS.get(tensor)
    if maker is None and tensor._base is not None:
        maker = _MAKERS.get(tensor._base)
    return maker


class StreamGraph:
    """Named streams with dependencies between them, declared in any order.

    Example:
        >>> import streamsan
        >>> graph = streamsan.StreamGraph({"copy_out": ["infer"], "infer": ["load"], "load": []})
        >>> graph.order
        ['load', 'infer', 'copy_out']
        >>> streamsan.StreamGraph({"a": ["b"], "b": ["a"]})
        Traceback (most recent call last):
            ...
        streamsan.GraphError: streams wait for each other: `a` after `b` after `a`: leave one of these out
    """

    def __init__(self, after: dict[str, Iterable[str]]) -> None:
        """Declares streams.

        Args:
            after: For each name, the names of the streams that it comes after.

        Raises:
            GraphError: if a name is not declared, or streams wait for each other.
        """
        self._after = {name: list(dict.fromkeys(names)) for name, names in after.items()}
        try:
            self.order = _core.order_streams(self._declared())
        except ValueError as error:
            raise GraphError(str(error)) from None
        self._streams: dict[str, ManagedStream] = {}

    def __getitem__(self, name: str) -> ManagedStream:
        """Returns the managed stream of this name; it is made when it is asked for first."""
        if name not in self._after:
            known = ", ".join(map(repr, self._after))
            raise KeyError(f"no stream {name!r} in the graph: there are {known}")
        if name not in self._streams:
            self._streams[name] = ManagedStream(name, [self[other] for other in self._after[name]])
        return self._streams[name]

    def __iter__(self) -> Iterator[str]:
        """The names, each after those it depends on."""
        return iter(self.order)

    def __len__(self) -> int:
        """How many streams there are."""
        return len(self._after)

    def after(self, name: str) -> list[str]:
        """Returns the streams that a stream comes after."""
        return list(self._after[name])

    def to_dot(self) -> str:
        """Returns the graph in the DOT language: an arrow goes to the stream that waits."""
        return _core.write_stream_graph(self._declared())

    def to_svg(self) -> str:
        """Returns the graph as a picture."""
        return _core.draw_stream_graph(self._declared())

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _declared(self) -> list[tuple[str, list[str]]]:
        return list(self._after.items())


def _collect(value: object, tensors: list[torch.Tensor]) -> None:
    from streamsan._pipeline.items import flatten

    flatten(value, tensors)
