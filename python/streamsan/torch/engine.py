"""The end of the process waits until the autograd engine's threads are at rest."""

from __future__ import annotations

import atexit
import time
from pathlib import Path

_LONGEST_WAIT = 0.5
_STEP = 0.001


def wait_at_exit() -> None:
    """Lets the engine's threads finish before the interpreter goes down.

    `backward()` returns some moments before the engine's thread drops the results, and for that it may need
    the interpreter. If that is going down, the thread is made to end in the middle of C++, which aborts.
    """
    atexit.register(_wait)


def _wait() -> None:
    if not _engine_threads():
        return
    deadline = time.monotonic() + _LONGEST_WAIT
    calm = 0
    while calm < 2 and time.monotonic() < deadline:
        # Gives the interpreter away. A thread that waited for it is asleep too, hence two looks.
        time.sleep(_STEP)
        calm = 0 if "R" in _engine_threads() else calm + 1


def _engine_threads() -> str:
    """States of the engine's threads, one letter each: R runs or is about to, S sleeps."""
    states = ""
    for status in Path("/proc/self/task").glob("*/stat"):
        try:
            name, _, rest = status.read_text().rpartition(") ")
        except OSError:
            continue
        if "(pt_autograd_" in name:
            states += rest[:1]
    return states
