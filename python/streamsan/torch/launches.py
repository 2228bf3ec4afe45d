"""Launches of kernels that are no operators: the program's own of Triton, and those that Inductor made.

They are recorded with the kernel's name, what it does to which argument, and the bytes of the tensors. A
kernel counts as touching the whole of each tensor that it is given. On the virtual device it computes
nothing, which is a gap.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable
from typing import Any

import torch

from streamsan import _core, _marks
from streamsan._watch import after_import
from streamsan.torch import triton_accesses
from streamsan.torch.plans import READ, UPDATE, WRITE

_OPAQUE, _NOT_COMPUTED = 0, 11
_Access = tuple[torch.Tensor, int, str]


def watch_triton() -> None:
    """Wraps the two places through which launches go, once the program imports them."""
    after_import("triton.runtime.jit", _watch_functions)
    after_import("torch._inductor.runtime.triton_heuristics", _watch_compiled)


def watch_wrappers() -> None:
    """Says where compiled code launches from C++, which nothing here sees. To be called on a GPU."""
    after_import("torch._inductor.output_code", _watch_cpp_wrapper)
    native: Any = getattr(torch._C, "_aoti", None)
    runner: Any = getattr(native, "AOTIModelContainerRunnerCuda", None)
    if hasattr(runner, "run"):
        runner.run = _unseen("AOTInductor", runner.run, lambda *_: True)


def _watch_cpp_wrapper() -> None:
    graph: Any = importlib.import_module("torch._inductor.output_code").CompiledFxGraph
    graph.__call__ = _unseen(
        "the C++ wrapper of Inductor", graph.__call__, lambda self, *_: self.fx_kwargs.get("cpp_wrapper")
    )


def _unseen(name: str, function: Any, applies: Any) -> Any:
    """Wraps a call whose launches are not seen."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if applies(*args):
            _core.mark()
            _core.gap(_OPAQUE, name)
            _core.clear_context()
        return function(*args, **kwargs)

    return call


def _watch_functions() -> None:
    function: Any = importlib.import_module("triton.runtime.jit").JITFunction
    plain = function.run

    @functools.wraps(plain)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        call = functools.partial(plain, self, *args, grid=grid, warmup=warmup, **kwargs)
        accesses = None if warmup or _marks.annotated() else _accesses_of_function(self, args, kwargs)
        if accesses is None:
            return call()
        device = torch.cuda.current_device()
        return _launched(call, self.__name__, torch._C._cuda_getCurrentRawStream(device), device, accesses)

    function.run = run


def _accesses_of_function(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[_Access] | None:
    names = function.arg_names
    try:
        bound = function.signature.bind(*args, **{name: kwargs[name] for name in names if name in kwargs})
    except TypeError:
        # Triton says what is wrong with the call.
        return None
    bound.apply_defaults()
    found = triton_accesses.modes(function, bound.arguments)
    if found is None:
        return None
    tensors = ((name, _tensor(bound.arguments[name])) for name in names if name in found)
    return [(tensor, found[name], name) for name, tensor in tensors if tensor is not None]


def _tensor(value: object) -> torch.Tensor | None:
    """The tensor of an argument; Triton wraps one that it is to take for another type."""
    if not isinstance(value, torch.Tensor):
        value = getattr(value, "base", None)
    return value if isinstance(value, torch.Tensor) else None


def _watch_compiled() -> None:
    tuner: Any = importlib.import_module("torch._inductor.runtime.triton_heuristics").CachingAutotuner
    plain = tuner.run

    @functools.wraps(plain)
    def run(self: Any, *args: Any, stream: int, benchmark_run: bool = False, **kwargs: Any) -> Any:
        call = functools.partial(plain, self, *args, stream=stream, benchmark_run=benchmark_run, **kwargs)
        if benchmark_run or _marks.annotated():
            return call()
        accesses = list(_accesses_of_compiled(self, args, kwargs))
        device = accesses[0][0].device.index if accesses else torch.cuda.current_device()
        return _launched(call, self.fn.__name__, stream, device, accesses)

    tuner.run = run


def _accesses_of_compiled(tuner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterable[_Access]:
    """Inductor names arguments after what it does with them, and lists those that it changes.

    Two arguments can be the same buffer.
    """
    changed = set(tuner.mutated_arg_names or ())
    names = list(tuner.triton_meta.get("signature", ()))
    for name, value in {**dict(zip(names, args, strict=False)), **kwargs}.items():
        if not isinstance(value, torch.Tensor) or value.device.type != "cuda":
            continue
        if name.startswith("in_out_ptr") or (name in changed and not name.startswith("out_ptr")):
            yield value, UPDATE, name
        elif name.startswith("out_ptr"):
            yield value, WRITE, name
        elif name.startswith("in_ptr"):
            yield value, READ, name
        else:
            # A workspace, or the argument of a kernel that the program wrote.
            yield value, UPDATE if name in changed or name.startswith("ws_ptr") else READ, name


def _launched(call: Any, name: str, stream: int, device: int, accesses: list[_Access]) -> Any:
    """Makes a launch, and records it."""
    # What runtime calls happen inside is part of it.
    _core.mark(name)
    try:
        result = call()
        _core.record_kernel(stream, device, accesses)
        if _core.is_virtual():
            _core.gap(_NOT_COMPUTED, name)
        return result
    finally:
        _core.clear_context()
