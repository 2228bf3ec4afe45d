"""The dispatch mode: one object for each user thread."""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from streamsan import _core
from streamsan.torch import page_locked, readback, transfers
from streamsan.torch.plans import Operators, Route, kernel_key
from streamsan.torch.stream_handles import tell_record_stream
from streamsan.torch.virtual import compute

_operators = Operators()


class _Wrappers(dict[type, bool]):
    """Whether a tensor class handles operators itself; a missing one is looked at."""

    def __missing__(self, kind: type) -> bool:
        handler = getattr(kind, "__torch_dispatch__", None)
        wraps = self[kind] = handler is not torch._C._disabled_torch_dispatch_impl
        return wraps


_wrappers = _Wrappers()


class StreamMode(TorchDispatchMode):
    """Sees each operator of its thread, and of the engine's threads while its thread is in backward."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch would wrap each call to keep the compiler out; while this mode is on, nothing is compiled.
        return False

    def __init__(self) -> None:
        """Belongs to the thread that makes it."""
        super().__init__()
        self.recorder = _core.ThreadRecorder()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Records the operator, and computes it if it runs on the device."""
        for kind in types:
            if _wrappers[kind]:
                # A tensor without data is for the mode below, which is not asked after "not implemented".
                if issubclass(kind, FakeTensor):
                    return func(*args, **(kwargs or {}))
                # A wrapper takes itself apart; its parts come back here.
                return NotImplemented
        kwargs = kwargs or {}
        if not isinstance(func, OpOverload):
            return func(*args, **kwargs)
        operator = _operators[func]
        route = operator.route
        if route is Route.PARTS:
            with self:
                return func.decompose(*args, **kwargs)
        recorder = self.recorder
        device = recorder.begin(operator.plan, args, kwargs)
        if route is Route.KERNEL and device >= 0:
            with self:
                return func._op_dk(kernel_key(func), *args, **kwargs)
        if device == -1 or route is Route.VIEW:
            if operator.name == "record_stream":
                tell_record_stream(*args, **kwargs)
            return func(*args, **kwargs)
        try:
            if device < 0:
                return page_locked.make(recorder, operator, func, args, kwargs)
            if route is Route.COPY:
                source, target = transfers.ends(operator, args, kwargs)
                if source != target:
                    if transfers.page_locks(source, target, operator, kwargs) or not transfers.is_plain(
                        operator, args, kwargs
                    ):
                        with self:
                            return transfers.copy_in_steps(operator, args, kwargs)
                    route = Route.REAL
            if route is Route.REAL:
                out = func(*args, **kwargs)
                recorder.note_sizes(out)
                if kwargs.get("pin_memory"):
                    recorder.announce_page_locked(out)
                return out
            out = compute(operator, func, args, kwargs, device)
            flags = int(operator.may_wait and readback.waits(operator.name, args, kwargs))
            recorder.record(operator.plan, device, args, kwargs, out, flags)
            return out
        finally:
            recorder.leave()
