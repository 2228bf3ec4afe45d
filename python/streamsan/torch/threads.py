"""A dispatch mode for each user thread: modes do not pass to new threads by themselves."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch.utils._python_dispatch as python_dispatch

from streamsan.torch.mode import StreamMode

_LONGEST_WAIT = 0.2

_local = threading.local()


def current_mode() -> StreamMode | None:
    """Returns the mode of the calling thread; on a thread of the engine, that of the thread it works for."""
    mode: StreamMode | None = getattr(_local, "mode", None)
    if mode is not None:
        return mode
    stack = python_dispatch._get_current_dispatch_mode_stack()
    return next((mode for mode in stack if isinstance(mode, StreamMode)), None)


def enter_thread() -> StreamMode:
    """Turns the mode of the calling thread on.

    That of the main thread stays on to the end of the process: the autograd engine's threads share it, and
    the last to let go of it needs the interpreter. A thread of the engine that asks for the interpreter while
    it goes down would abort the process.
    """
    mode = StreamMode()
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


def watch_threads() -> None:
    """Turns a mode on in each thread that starts from now on."""
    thread: Any = threading.Thread
    bootstrap: Callable[[threading.Thread], None] = thread._bootstrap_inner

    def bootstrap_with_mode(self: threading.Thread) -> None:
        # A thread made by C++ that calls into Python is entered by `threading` with a dummy object, which
        # does not come through here.
        enter_thread()
        try:
            bootstrap(self)
        finally:
            _leave_thread()

    thread._bootstrap_inner = bootstrap_with_mode
