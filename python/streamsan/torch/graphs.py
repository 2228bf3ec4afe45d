"""Operators in a graph: kept when they are captured, computed when the graph is launched.

While its stream captures, an operator computes nothing: its results get memory, as on a GPU, and what to
compute is kept. The device library has its number in a node of the graph, and calls back at each launch, on
whatever thread launches. Then the operator is computed on the same bytes as those at the capture.

What is kept has the addresses of device memory, not the program's tensors. Memory that was freed since may
belong to others, who then find the results in it, as on a GPU. Random numbers of a launch are those that the
generator would have given at that time without a graph.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch

from streamsan import _core
from streamsan.torch import generators, op_tables, readback, results
from streamsan.torch.aliases import alias, is_dense, room_for
from streamsan.torch.plans import Operator

_HOST: Final = torch.device("cpu")
_META: Final = torch.device("meta")
_Tensor: Final = torch.Tensor


@dataclass(slots=True)
class _Kept:
    """An operator, with host tensors over the bytes of its arguments and results."""

    operator: Operator
    run: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    targets: list[torch.Tensor]
    """Where new results go, or those of `out=`."""
    out: list[Any]
    """The tensors that were given for `out=`, as host tensors."""
    device: int
    generator: torch.Generator | None

    def compute(self) -> None:
        """Computes the operator and puts its results in their places."""
        args, kwargs = list(self.args), dict(self.kwargs)
        if self.out:
            made = [results.fresh(out, _HOST) for out in self.out]
            self.run(*args, **kwargs, **dict(zip(self.operator.out_names, made, strict=True)))
            for target, result in results.pairs(self.out, made):
                target.copy_(result)
            return
        if self.operator.random:
            with generators.drawing(self.device, self.generator) as host:
                generators.replace(args, kwargs, host)
                result = self.run(*args, **kwargs)
        else:
            result = self.run(*args, **kwargs)
        for target, made in zip(self.targets, results.new_tensors(self.operator, result), strict=True):
            target.copy_(made)


_numbers: Final = itertools.count(1)
_kept: Final[dict[int, _Kept]] = {}


def watch_launches() -> None:
    """Has the device library call back for operators in graphs."""
    _core.compute_operators_of_graphs(_compute, _forget)


def watch_drawing() -> None:
    """Has the preloaded runtime draw a graph. Newer torch asks one that `cuda.bindings` brings along."""
    module: Any = torch.cuda.graphs
    if not hasattr(module, "_dump_graph_dot"):
        return
    runtime = ctypes.CDLL(None)

    def dump(graph: Any, path: str, *, verbose: bool = True) -> None:
        handle = ctypes.c_uint64(graph.raw_cuda_graph())
        torch.cuda.check_error(runtime.cudaGraphDebugDotPrint(handle, os.fsencode(path), int(verbose)))

    module._dump_graph_dot = dump


def is_captured(device: int) -> bool:
    """Whether an operator on the current stream of a device becomes a node.

    Raises:
        torch.AcceleratorError: if the capture is invalid, as for any work in it.
    """
    native: Any = torch._C
    state = _core.captures_in(native._cuda_getCurrentRawStream(device), device)
    if state > 1:
        # Raises torch's own error.
        torch.cuda.current_stream(device).query()
    return state == 1


def keep(
    operator: Operator,
    run: Callable[..., Any],
    infer: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    device: int,
) -> Any:
    """Makes the operator's results without computing them, and keeps it for launches.

    It is the next operator that the thread records.

    Args:
        operator: the operator.
        run: computes it on host tensors.
        infer: computes it on tensors without data, if it can.
        args: its arguments.
        kwargs: its keyword arguments.
        device: where it runs.
    """
    if operator.may_wait and readback.waits(operator.name, args, kwargs):
        # Raises torch's own error, and makes the capture invalid.
        torch.cuda.current_stream(device).synchronize()
    given = [kwargs[name] for name in operator.out_names]
    targets: list[torch.Tensor] = []

    def make(result: torch.Tensor, device: int) -> torch.Tensor:
        real = room_for(result, device, is_dense(result))
        targets.append(alias(real))
        return real

    if given:
        made = [results.fresh(out, _META) for out in given]
        _infer(operator, run, infer, args, {**kwargs, **dict(zip(operator.out_names, made, strict=True))})
        for real, shaped in results.pairs(given, made):
            if real.shape != shaped.shape:
                real.resize_(shaped.shape)
        out = results.given_outs(operator, given)
    else:
        inferred = _infer(operator, run, infer, args, kwargs)
        out = results.to_device(operator, inferred, args, kwargs, device, make)
    kept_kwargs = {name: _keep(value) for name, value in kwargs.items() if name not in operator.out_names}
    kept_kwargs.pop("pin_memory", None)
    number = next(_numbers)
    _kept[number] = _Kept(
        operator=operator,
        run=run,
        args=[_keep(value) for value in args],
        kwargs=kept_kwargs,
        targets=targets,
        out=[_keep(out) for out in given],
        device=device,
        generator=generators.find(args, kwargs),
    )
    _core.keep_operator(number)
    return out


def _infer(
    operator: Operator,
    run: Callable[..., Any],
    infer: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Returns the operator's results as tensors of which only shape, strides and type count."""
    if not operator.host_results and operator.name not in op_tables.HOST_SHAPES:
        try:
            return _run_with(infer, args, kwargs, _to_meta)
        except (NotImplementedError, RuntimeError, TypeError, ValueError, AssertionError):
            # It has no rule for the shape, or it fails: then it fails once more.
            pass
    return _run_with(run, args, kwargs, _to_blank)


def _run_with(
    run: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], convert: Callable[[Any], Any]
) -> Any:
    own_kwargs = {name: convert(value) for name, value in kwargs.items()}
    own_kwargs.pop("pin_memory", None)
    return run(*(convert(value) for value in args), **own_kwargs)


def _to_meta(value: Any) -> Any:
    if isinstance(value, _Tensor):
        if not value.is_cuda:
            return value
        shaped = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=_META)
        shaped = torch._conj(shaped) if value.is_conj() else shaped
        return torch._neg_view(shaped) if value.is_neg() else shaped
    return _convert(value, _to_meta, _META)


def _to_blank(value: Any) -> Any:
    """Returns a host tensor of values that most operators take: those of the device are not known yet."""
    if isinstance(value, _Tensor):
        if not (value.is_cuda or value.is_meta):
            return value
        blank = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
        return blank.fill_(1 if value.is_floating_point() or value.is_complex() else 0)
    return _convert(value, _to_blank, _HOST)


def _keep(value: Any) -> Any:
    """Returns a host tensor over the bytes of a device tensor; of a host tensor a copy, as kernels do."""
    if isinstance(value, _Tensor):
        return alias(value) if value.is_cuda else value.clone()
    return value if isinstance(value, torch.Generator) else _convert(value, _keep, _HOST)


def _convert(value: Any, convert: Callable[[Any], Any], device: torch.device) -> Any:
    kind = type(value)
    if kind is list or kind is tuple:
        return [convert(item) for item in value]
    if kind is torch.device and value.type == "cuda":
        return device
    return None if isinstance(value, torch.Generator) else value


def _compute(number: int) -> None:
    """Called for each node of a launch."""
    native: Any = torch._C
    kept = _kept[number]
    try:
        # Neither the thread's modes nor its settings have a part in it.
        with (
            torch.inference_mode(False),
            native._DisableAutocast(),
            native._AutoDispatchBelowAutograd(),
            native._DisableTorchDispatch(),
        ):
            kept.compute()
    except Exception as error:
        raise RuntimeError(f"{kept.operator.name} failed in the launch of a graph: {error}") from error


def _forget(number: int) -> None:
    """Called when no graph and no executable has the node any more."""
    _kept.pop(number, None)
