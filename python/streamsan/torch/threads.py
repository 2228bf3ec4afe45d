"""A dispatch mode for each user thread: modes do not pass to new threads by themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from streamsan.torch.mode import StreamMode

_local = threading.local()


def current_mode() -> StreamMode | None:
    """Returns the mode of the calling thread, if it is a user thread."""
    mode: StreamMode | None = getattr(_local, "mode", None)
    return mode


def enter_thread() -> StreamMode:
    """Turns the mode of the calling thread on."""
    mode = StreamMode()
    mode.__enter__()
    _local.mode = mode
    return mode


def watch_threads() -> None:
    """Turns a mode on in each thread that starts from now on."""
    thread: Any = threading.Thread
    bootstrap: Callable[[threading.Thread], None] = thread._bootstrap_inner

    def bootstrap_with_mode(self: threading.Thread) -> None:
        # A thread made by C++ that calls into Python is entered by `threading` with a dummy object, which
        # does not come through here.
        mode = enter_thread()
        try:
            bootstrap(self)
        finally:
            mode.__exit__(None, None, None)

    thread._bootstrap_inner = bootstrap_with_mode
