"""Which `ignore` and `annotate` a thread is inside, by the context of what runs: tasks share a thread.

The recorder knows threads only. When a task goes on, asyncio runs a handle in the task's context; around it
the thread is put inside what that context is inside, and taken out again. Nothing is looked at per operation,
and nothing at all until something is entered while a loop runs.

It can miss: loops that are not asyncio's own (uvloop), and tasks that run at once when they are made (eager
tasks) until they wait for the first time.
"""

from __future__ import annotations

import functools
import sys
import threading
from contextvars import ContextVar
from typing import Any, Final, NamedTuple


class Level:
    """One `annotate`: what kernels touch inside, and how many were launched."""

    def __init__(self, accesses: list[tuple[Any, int]]) -> None:
        """Nothing was launched so far."""
        self.accesses = accesses
        self.launches = 0


class Inside(NamedTuple):
    """What is entered and not left, the outermost first."""

    ignores: tuple[tuple[int, int], ...] = ()
    """As the recorder knows them: where they stand and what they say."""
    levels: tuple[Level, ...] = ()


_NOTHING: Final = Inside()
_by_context: Final[ContextVar[Inside]] = ContextVar("streamsan_inside", default=_NOTHING)
_thread = threading.local()
_watching = False


def inside() -> Inside:
    """What the calling thread is inside."""
    now: Inside = getattr(_thread, "now", _NOTHING)
    return now


def now_inside(now: Inside) -> None:
    """Notes what the calling thread, and what runs on it, are inside from now on."""
    if not _watching and _loop_runs():
        # Outside of its loop the thread is where it was before.
        _thread.outside = inside()
        _watch()
    _thread.now = now
    _by_context.set(now)


def _loop_runs() -> bool:
    asyncio: Any = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


def _watch() -> None:
    import asyncio

    global _watching
    _watching = True
    kind: Any = asyncio.Handle
    run = kind._run

    @functools.wraps(run)
    def run_inside(handle: Any) -> Any:
        outside = _thread.__dict__.pop("outside", None) or inside()
        _go(_within(outside, handle._context.get(_by_context, _NOTHING)))
        try:
            return run(handle)
        finally:
            _go(outside)

    kind._run = run_inside


def _within(outside: Inside, wanted: Inside) -> Inside:
    """What a task is inside whose context may be older than what stands around its loop."""
    return Inside(
        outside.ignores + tuple(one for one in wanted.ignores if one not in outside.ignores),
        outside.levels + tuple(one for one in wanted.levels if one not in outside.levels),
    )


def _go(wanted: Inside) -> None:
    """Puts the thread inside these, and no others."""
    now = inside()
    if now == wanted:
        return
    from streamsan._marks import recorder

    core = recorder()
    if core is not None:
        if now.ignores != wanted.ignores:
            core.set_ignores(list(wanted.ignores))
        if now.levels != wanted.levels:
            launches = core.annotate(wanted.levels[-1].accesses if wanted.levels else None)
            if now.levels:
                now.levels[-1].launches += launches
    _thread.now = wanted
