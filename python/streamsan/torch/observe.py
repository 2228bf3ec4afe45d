"""The dispatch mode for a GPU: operators run as they are, and are only recorded."""

from __future__ import annotations

import functools
from typing import Any, Final

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from streamsan import _core
from streamsan.torch import collectives, graphs, page_locked, readback, rows, transfers, works
from streamsan.torch.observed_copies import copy_in_parts
from streamsan.torch.plans import OPERATORS, Operator, Route, kernel_key
from streamsan.torch.stream_handles import tell_record_stream
from streamsan.torch.wrappers import Handling, handling

# What an operator's object does when it is called, unless torch has put more into it.
_CALLS_ONLY: Final = OpOverload.__call__.__code__.co_names == ("_op",)


class _Learned(dict[object, Operator]):
    """Operators that the native half of the mode knows; a missing one is told to it."""

    def __missing__(self, func: OpOverload) -> Operator:
        operator = self[func] = OPERATORS[func]
        by_hand = operator.may_wait or operator.copies_many or operator.name == "record_stream"
        by_hand = by_hand or operator.route is Route.GROUP or func.namespace in collectives.FUNCTIONAL
        by_hand = by_hand or (operator.selects and _core.is_virtual())
        call = func._op if _CALLS_ONLY else func
        _core.learn_operator(func, call, operator, operator.plan, by_hand)
        return operator


_learned = _Learned()


class ObserveMode(_core.Observer, TorchDispatchMode):
    """Sees each operator of its thread, and of the engine's threads while its thread is in backward.

    It belongs to the thread that makes it. It computes nothing, unless it is given a function that does. The
    preloaded library records the runtime calls that an operator makes, such as copies between host and
    device.

    torch calls the inherited `__torch_dispatch__`, which does what most operators need and leaves the rest to
    `dispatch`.
    """

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch would wrap each call to keep the compiler out; it leaves the layer's own functions alone.
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether functions of `torch.compile` are compiled: what they launch is recorded elsewhere."""
        return not _core.is_virtual()

    def dispatch(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the operator, and records it if it runs on the device."""
        how = handling(types)
        if how is not Handling.OURS:
            return NotImplemented if how is Handling.WRAPPER else func(*args, **kwargs)
        if not isinstance(func, OpOverload):
            return func(*args, **kwargs)
        operator = _learned[func]
        route = operator.route
        if route is Route.PARTS:
            with self:
                return func.decompose(*args, **kwargs)
        if operator.copies_many and transfers.any_crosses(*args, **kwargs):
            with self:
                return transfers.copy_each(*args, **kwargs)
        if route is Route.GROUP and collectives.by_nccl(args, kwargs):
            with self:
                return func._op_dk(torch._C.DispatchKey.CUDA, *args, **kwargs)
        if route is Route.GROUP and self.compute is None and collectives.on_device(args, kwargs):
            # Gloo copies on streams of its own, which is recorded, and works on the host.
            return func(*args, **kwargs)
        if func.namespace in collectives.FUNCTIONAL and collectives.on_device(args, kwargs):
            key = kernel_key(func)
            if key is not None:
                with self:
                    return works.run_functional(
                        operator.name, functools.partial(func._op_dk, key), args, kwargs
                    )
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
                    if args[0].layout is not torch.strided or args[0].is_nested:
                        route = Route.REAL
                    elif transfers.page_locks(source, target, operator, kwargs) or not transfers.is_plain(
                        operator, args, kwargs
                    ):
                        return self.copy_in_parts(operator, func, args, kwargs)
                    else:
                        route = Route.REAL
            if route is Route.REAL:
                out = func(*args, **kwargs)
                recorder.note_sizes(out)
                if kwargs.get("pin_memory"):
                    recorder.announce_page_locked(out)
                return out
            touched = args
            if self.compute is None:
                out = func(*args, **kwargs)
            else:
                out = self.compute(operator, func, args, kwargs, device)
                if operator.selects and not (_core.is_capturing() and graphs.is_captured(device)):
                    touched = rows.touched(operator.name, args)
            flags = int(operator.may_wait and readback.waits(operator.name, args, kwargs))
            recorder.record(operator.plan, device, touched, kwargs, out, flags)
            return out
        finally:
            recorder.leave()

    def copy_in_parts(
        self, operator: Operator, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs a copy between devices that more than one runtime call makes."""
        return copy_in_parts(self, self.recorder, operator, func, args, kwargs)
