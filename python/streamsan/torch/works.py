"""Work objects of collectives: of which one each is, and what holds once one of its methods has returned.

Mostly a method makes the runtime calls that order the caller, and they record themselves. torch's newer back
end for NCCL leaves them out where its own thread has already seen that the collective has finished; then what
the method promises is recorded here.

It can miss: methods that C++ calls, such as the reducer of `DistributedDataParallel`, which does so right
after the collective.
"""

from __future__ import annotations

import functools
import os
import re
import weakref
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import torch

from streamsan import _core
from streamsan._watch import after_import

_End = tuple[int, int, int]

STREAM_WAITS, HOST_KNOWS = 1, 2
_MAKES_WORK: Final = re.compile(r"-> [\w.:]*\bWork\b")
_WAITS: Final = ("wait", "synchronize", "block_current_stream", "get_future")


class _Issued(NamedTuple):
    """The collective of a work object."""

    end: _End
    is_barrier: bool
    """Whether `wait` holds the host, too."""
    future_waits: bool
    """Whether to ask for its future orders the stream; else the future does, when it is waited for."""


_issued: Final[weakref.WeakKeyDictionary[Any, _Issued]] = weakref.WeakKeyDictionary()
_of_storages: Final[dict[int, _End]] = {}
"""By address: ends of collectives whose results are waited for by `wait_tensor`."""


def watch_works() -> None:
    """Wraps what makes work objects, and their methods."""
    after_import("torch.distributed.distributed_c10d", _watch)


def _watch() -> None:
    groups: Any = getattr(torch._C, "_distributed_c10d", None)
    if groups is None:
        return
    for owner in (groups.ProcessGroup, groups.Backend):
        for name, function in list(vars(owner).items()):
            if _MAKES_WORK.search(getattr(function, "__doc__", None) or ""):
                setattr(owner, name, _issuing(groups, function))
    for name in _WAITS:
        function = getattr(groups.Work, name, None)
        if function is not None:
            setattr(groups.Work, name, _waiting(function))
    groups.Work.is_completed = _asking(groups.Work.is_completed)


def _issuing(groups: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def issue(*args: Any, **kwargs: Any) -> Any:
        before = _core.collective_end()
        work = function(*args, **kwargs)
        end = _core.collective_end()
        if end is not None and end != before and isinstance(work, groups.Work):
            is_barrier = function.__name__ == "barrier"
            _issued[work] = _Issued(end, is_barrier, not _is_first_back_end(groups, args[0]))
        return work

    return issue


def _is_first_back_end(groups: Any, group: Any) -> bool:
    """Whether this is the older of torch's back ends for NCCL, or has it for CUDA tensors."""
    if isinstance(group, groups.ProcessGroup):
        group = group._get_backend(torch.device("cuda"))
    return isinstance(group, groups.ProcessGroupNCCL)


def _waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    name = function.__name__

    @functools.wraps(function)
    def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
        issued = _issued.get(work)
        ask = functools.partial(function, work)
        if name == "get_future":
            if issued is not None and issued.future_waits:
                # Before the call: the future's own event, which a callback waits for, is to be behind it.
                call(issued.end, STREAM_WAITS, False, _nothing, (), {})
            return call(None, 0, False, ask, args, kwargs)
        # With a limit in time it returns when the collective has finished.
        limited = bool(args or kwargs) and any(bool(value) for value in (*args, *kwargs.values()))
        blocks = name == "wait" and (limited or _blocking_wait())
        holds = STREAM_WAITS
        if blocks or (name == "wait" and issued is not None and issued.is_barrier):
            holds |= HOST_KNOWS
        return call(issued and issued.end, holds, blocks, ask, args, kwargs)

    return wait


def _nothing() -> None:
    pass


def _blocking_wait() -> bool:
    """Whether the program has asked for waits that hold the host until the collective has finished."""
    said = os.environ.get("TORCH_NCCL_BLOCKING_WAIT", os.environ.get("NCCL_BLOCKING_WAIT", ""))
    return said.lower() in ("1", "y", "yes", "t", "true")


def _asking(function: Callable[[Any], bool]) -> Callable[[Any], bool]:
    @functools.wraps(function)
    def is_completed(work: Any) -> bool:
        issued = _issued.get(work)
        _core.mark()
        _core.work_begin(True)
        done = False
        try:
            done = function(work)
            return done
        finally:
            _core.work_end(issued and issued.end, 0, HOST_KNOWS if done else 0)
            _core.clear_context()

    return is_completed


def call(
    end: _End | None,
    holds: int,
    asks: bool,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Calls what waits for the end of a collective; afterwards, if it does not raise, this holds."""
    _core.mark()
    _core.work_begin(asks)
    held = 0
    try:
        answer = function(*args, **kwargs)
        held = holds if end is not None else 0
        return answer
    finally:
        stream = torch._C._cuda_getCurrentRawStream(end[2]) if held and end is not None else 0
        _core.work_end(end, stream, held)
        _core.clear_context()


def run_functional(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Runs an operator of the functional collectives, whose results are waited for one by one.

    Args:
        name: the operator's, without its namespace.
        function: what runs it.
        args: its arguments.
        kwargs: its named arguments.
    """
    if name == "wait_tensor":
        end = _of_storages.pop(_address(args[0]), None)
        blocks = _blocking_wait()
        return call(end, STREAM_WAITS | HOST_KNOWS * blocks, blocks, function, args, kwargs)
    before = _core.collective_end()
    out = function(*args, **kwargs)
    end = _core.collective_end()
    if end is not None and end != before:
        for tensor in out if isinstance(out, (list, tuple)) else (out,):
            _of_storages[_address(tensor)] = end
    return out


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())
