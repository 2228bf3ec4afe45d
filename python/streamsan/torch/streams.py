"""Places of calls that are not operators: methods of streams and events, synchronizations, a few functions.

Each is wrapped so that the recorder knows the Python stack of the runtime calls it makes.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import inspect
from collections.abc import Callable
from typing import Any

import torch

from streamsan import _core
from streamsan.torch.stream_handles import tell_new
from streamsan.torch.threads import enter_late

_STREAM_METHODS = ("wait_event", "wait_stream", "record_event", "query", "synchronize")
_GRAPH_METHODS = ("capture_begin", "capture_end", "instantiate", "replay", "reset", "debug_dump")
_EVENT_METHODS = ("record", "query", "elapsed_time", "synchronize", "ipc_handle")


def _located(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function so that its runtime calls have the caller's stack."""

    @functools.wraps(function)
    def located(*args: Any, **kwargs: Any) -> Any:
        _core.mark()
        try:
            return function(*args, **kwargs)
        finally:
            _core.clear_context()

    return located


def _locate(owner: Any, name: str) -> None:
    function = getattr(owner, name, None)
    if function is None:
        return
    try:
        setattr(owner, name, _located(function))
    except TypeError:
        _replace_native(owner, name, _located(function))


def _replace_native(owner: type, name: str, function: object) -> None:
    """Replaces a method of a class written in C, which refuses to be changed from Python."""
    [methods] = gc.get_referents(vars(owner))
    if isinstance(methods, dict) and name in methods:
        methods[name] = function
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))


def _watch_event_wait() -> None:
    """Also tells of waits for an event without a record, which never reach the runtime."""
    event: Any = torch.cuda.Event
    wait = event.wait

    @functools.wraps(wait)
    def located(self: Any, stream: Any = None) -> None:
        _core.mark()
        try:
            if not self.cuda_event:
                waiter = stream if stream is not None else torch.cuda.current_stream()
                _core.unrecorded_wait(id(self), waiter.cuda_stream, waiter.device_index)
            wait(self, stream) if stream is not None else wait(self)
        finally:
            _core.clear_context()

    event.wait = located


def _watch_stream_creation() -> None:
    """Gives a new stream the name of the variable it is assigned to."""
    stream: Any = torch.cuda.Stream
    make = stream.__new__

    @functools.wraps(make)
    def located(cls: Any, *args: Any, **kwargs: Any) -> Any:
        # `torch.cuda.stream(...)` and `current_stream()` come here too, before work on that stream.
        enter_late()
        _core.mark()
        try:
            made = make(cls, *args, **kwargs)
            # With an id or a handle it is for a stream that exists: `s = torch.cuda.current_stream()`.
            if "stream_ptr" in kwargs:
                _core.name_stream_here(made.cuda_stream, made.device_index)
            elif "stream_id" not in kwargs:
                tell_new(made)
            return made
        finally:
            _core.clear_context()

    stream.__new__ = staticmethod(located)
    _core.watch_stream_type(torch.Stream, _tell_generic)


def _tell_generic(made: torch.Stream, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Called with each object of `torch.Stream`, which is no `torch.cuda.Stream`."""
    exists = "stream_id" in kwargs or len(args) > 1
    if exists or made.device.type != "cuda":
        return
    _core.mark()
    try:
        tell_new(made)
    finally:
        _core.clear_context()


def _watch_sleep() -> None:
    """Records torch's delay kernel: a launch that touches nothing."""
    native: Any = torch._C
    sleep = native._cuda_sleep

    @functools.wraps(sleep)
    def located(cycles: int) -> None:
        stream = torch.cuda.current_stream()
        _core.mark("torch.cuda._sleep")
        try:
            _core.record_launch(stream.cuda_stream, stream.device_index)
            sleep(cycles)
        finally:
            _core.clear_context()

    native._cuda_sleep = located


def watch_streams() -> None:
    """Wraps the methods and functions."""
    for name in _STREAM_METHODS:
        _locate(torch.cuda.Stream, name)
        _locate(torch.Stream, name)
    for name in _EVENT_METHODS:
        _locate(torch.cuda.Event, name)
    for name in (*_EVENT_METHODS, "wait"):
        _locate(torch.Event, name)
    for name in _GRAPH_METHODS:
        _locate(torch.cuda.CUDAGraph, name)
    _watch_event_wait()
    _watch_stream_creation()
    _watch_sleep()
    native: Any = torch._C
    _locate(native, "_cuda_emptyCache")
    runtime = getattr(native, "_cudart", None)
    for name in dir(runtime):
        if name.startswith("cuda") and inspect.isbuiltin(getattr(runtime, name)):
            _locate(runtime, name)
    _locate(torch.cuda, "synchronize")
    _locate(torch.accelerator, "synchronize")
