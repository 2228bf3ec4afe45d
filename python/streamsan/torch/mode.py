"""The dispatch mode: one object for each user thread."""

from __future__ import annotations

from typing import Any

from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from streamsan import _core
from streamsan.torch import page_locked, readback, transfers
from streamsan.torch.plans import OPERATORS, Route, kernel_key
from streamsan.torch.stream_handles import tell_record_stream
from streamsan.torch.virtual import compute
from streamsan.torch.wrappers import Handling, handling


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
        how = handling(types)
        if how is not Handling.OURS:
            return NotImplemented if how is Handling.WRAPPER else func(*args, **(kwargs or {}))
        kwargs = kwargs or {}
        if not isinstance(func, OpOverload):
            return func(*args, **kwargs)
        operator = OPERATORS[func]
        route = operator.route
        if route is Route.PARTS:
            with self:
                return func.decompose(*args, **kwargs)
        if operator.copies_many and transfers.any_crosses(*args, **kwargs):
            with self:
                return transfers.copy_each(*args, **kwargs)
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
