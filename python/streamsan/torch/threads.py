"""A dispatch mode for each user thread: modes do not pass to new threads by themselves."""

from __future__ import annotations

import _thread
import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._python_dispatch as python_dispatch

from streamsan.torch.modes import make_mode
from streamsan.torch.observe import ObserveMode
from streamsan.torch.operator_handles import resolve_operators

_LONGEST_WAIT = 0.2

_local = threading.local()


def current_mode() -> ObserveMode | None:
    """Returns the mode of the calling thread; on a thread of the engine, that of the thread it works for."""
    mode: ObserveMode | None = getattr(_local, "mode", None)
    if mode is not None:
        return mode
    stack = python_dispatch._get_current_dispatch_mode_stack()
    return next((mode for mode in stack if isinstance(mode, ObserveMode)), None)


def enter_thread() -> ObserveMode:
    """Turns the mode of the calling thread on.

    That of the main thread stays on to the end of the process: the autograd engine's threads share it, and
    the last to let go of it needs the interpreter. A thread of the engine that asks for the interpreter while
    it goes down would abort the process.
    """
    mode = make_mode()
    mode.__enter__()
    _local.mode = mode
    return mode


def _leave_thread() -> None:
    """Turns the mode of the calling thread off, and waits until the engine has let go of it (see above).

    The engine's threads drop a finished backward some moments after it has returned.
    """
    mode = _local.__dict__.pop("mode")
    mode.__exit__(None, None, None)
    deadline = time.monotonic() + _LONGEST_WAIT
    # What remains is the variable, and the argument of the function that counts.
    while sys.getrefcount(mode) > 2 and time.monotonic() < deadline:
        time.sleep(0.0002)


class _Leaver:
    """Turns the mode off when the thread's state goes, for a thread whose end nothing else tells of."""

    def __init__(self, mode: ObserveMode) -> None:
        self._mode = mode
        self._thread = threading.get_ident()

    def __del__(self) -> None:
        # At the end of the process the main thread clears the states of the threads that are left.
        if threading.get_ident() == self._thread:
            self._mode.__exit__(None, None, None)


def enter_late() -> None:
    """Turns a mode on in a thread that has none: one older than torch, or one of C that calls into Python.

    A thread of the engine has the mode of the thread it works for, also while that mode is at work and so
    not to be seen. Below another mode, which leaves by its place on the stack, none can be put.
    """
    if getattr(_local, "mode", None) is not None or torch._C._current_graph_task_id() != -1:
        return
    if not python_dispatch._get_current_dispatch_mode_stack():
        _local.leaver = _Leaver(enter_thread())


def _in_mode(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps what a new thread runs."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        enter_thread()
        try:
            return function(*args, **kwargs)
        finally:
            _leave_thread()

    return run


def _watch_starts(name: str) -> None:
    """Wraps a function of `_thread` that starts threads. `threading` holds the plain one."""
    start = getattr(_thread, name, None)
    if start is None:
        return

    @functools.wraps(start)
    def start_in_mode(*args: Any, **kwargs: Any) -> Any:
        resolve_operators()
        if args and callable(args[0]):
            args = (_in_mode(args[0]), *args[1:])
        elif callable(kwargs.get("function")):
            kwargs["function"] = _in_mode(kwargs["function"])
        return start(*args, **kwargs)

    setattr(_thread, name, start_in_mode)


def watch_threads() -> None:
    """Turns a mode on in each thread that starts from now on."""
    thread: Any = threading.Thread
    # A thread made by C++ that calls into Python is entered by `threading` with a dummy object, which does
    # not come through here.
    thread._bootstrap_inner = _in_mode(thread._bootstrap_inner)
    plain_start = thread.start

    @functools.wraps(plain_start)
    def start(self: threading.Thread) -> None:
        resolve_operators()
        plain_start(self)

    thread.start = start
    for name in ("start_new_thread", "start_new", "start_joinable_thread"):
        _watch_starts(name)
