"""Computing an operator of the virtual device on host tensors over the same bytes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import torch
from torch._ops import OpOverload

from streamsan import _core
from streamsan.torch import generators, graphs, late_copies, results
from streamsan.torch.aliases import alias, upload
from streamsan.torch.cells import CELLS
from streamsan.torch.kernels import QUESTIONS
from streamsan.torch.norms import NORMS
from streamsan.torch.plans import Operator

_UNKNOWN_OPERATOR: Final = 3
_HOST: Final = torch.device("cpu")
_Tensor: Final = torch.Tensor
# Operators that torch has no host kernel for.
_OWN: Final[dict[str, Callable[..., Any]]] = {**CELLS, **NORMS, **QUESTIONS}


def compute(
    operator: Operator, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], device: int
) -> Any:
    """Runs the operator on the host; its new results are made by the device's allocator."""
    if late_copies.ON:
        late_copies.before_work(device)
    run: Callable[..., Any] = _OWN.get(operator.name) or functools.partial(_run, func)
    if _core.is_capturing() and graphs.is_captured(device):
        return graphs.keep(operator, run, _OWN.get(operator.name, func), args, kwargs, device)
    host_args = [_to_host(value) for value in args]
    host_kwargs = {name: _to_host(value) for name, value in kwargs.items()} if kwargs else kwargs
    if host_kwargs:
        host_kwargs.pop("pin_memory", None)
    if operator.random:
        with generators.drawing(device, generators.find(args, kwargs)) as host:
            generators.replace(host_args, host_kwargs, host)
            result = run(*host_args, **host_kwargs)
    elif operator.out_names:
        return _compute_out(operator, run, host_args, host_kwargs, kwargs)
    else:
        result = run(*host_args, **host_kwargs)
    asked = kwargs.get("device")
    if asked is not None and torch.device(asked).type == "cpu":
        return result
    return results.to_device(operator, result, args, kwargs, device, upload)


def _run(func: OpOverload, *args: Any, **kwargs: Any) -> Any:
    try:
        return func(*args, **kwargs)
    except NotImplementedError as error:
        _core.gap(_UNKNOWN_OPERATOR, func._schema.name)
        raise NotImplementedError(
            f"{func} cannot be computed on the virtual device: torch has no kernel for it on the host"
        ) from error


def _to_host(value: Any) -> Any:
    if isinstance(value, _Tensor):
        return alias(value) if value.is_cuda else value
    kind = type(value)
    if kind is list or kind is tuple:
        return [_to_host(item) for item in value]
    if kind is torch.device and value.type == "cuda":
        return _HOST
    return value


def _compute_out(
    operator: Operator,
    run: Callable[..., Any],
    args: list[Any],
    host_kwargs: dict[str, Any],
    kwargs: dict[str, Any],
) -> Any:
    """Runs an `out=` operator into new host tensors: it may have to resize the given ones."""
    given = [kwargs[name] for name in operator.out_names]
    fresh = [results.fresh(out, _HOST) for out in given]
    run(*args, **{**host_kwargs, **dict(zip(operator.out_names, fresh, strict=True))})
    for real, host in results.pairs(given, fresh):
        if real.shape != host.shape:
            real.resize_(host.shape)
        (alias(real) if real.is_cuda else real).copy_(host)
    return results.given_outs(operator, given)
