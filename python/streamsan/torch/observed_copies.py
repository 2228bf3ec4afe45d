"""Copies between devices, as they run on a GPU.

The copy itself is a runtime call that records itself. What torch does before and after it with temporaries,
so that bytes of another layout or type can move, is recorded here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode

from streamsan import _core
from streamsan.torch import transfers
from streamsan.torch.plans import Operator


def copy_in_parts(
    mode: TorchDispatchMode,
    recorder: _core.ThreadRecorder,
    operator: Operator,
    func: OpOverload,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Runs a copy that crosses devices with more than one runtime call, between `begin` and `leave`."""
    source, target = transfers.ends(operator, args, kwargs)
    if source.type == target.type:
        # Without temporaries a kernel would run on the other device's stream.
        with mode:
            return transfers.copy_in_steps(operator, args, kwargs)
    if operator.name == "_to_copy":
        # These two steps are what the operator does. The first may make page-locked memory.
        with mode:
            made, non_blocking = transfers.make_target(args[0], kwargs)
            return made.copy_(args[0], non_blocking)
    return _copy_through_temporaries(recorder, func, args, kwargs)


def _copy_through_temporaries(
    recorder: _core.ThreadRecorder, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    target: torch.Tensor = args[0]
    source, non_blocking = transfers.source_of(args, kwargs)
    needed = transfers.temporaries(source, target, non_blocking)
    if needed.source:
        _tell(recorder, source, writes=False)
    out = func(*args, **kwargs)
    if needed.target:
        _tell(recorder, target, writes=True)
    return out


def _tell(recorder: _core.ThreadRecorder, tensor: torch.Tensor, *, writes: bool) -> None:
    if tensor.is_cuda:
        recorder.record_tensor(tensor, writes)
    else:
        _core.record_host_access(tensor, writes)
