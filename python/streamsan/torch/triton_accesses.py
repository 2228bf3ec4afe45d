"""What a kernel of Triton does to each of its tensors, read off its intermediate code.

torch looks for the tensors that a kernel changes, for `torch.library.triton_op` and its compiler. The same
search with loads in place of stores finds those that are read.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, Final

import torch

from streamsan.torch.plans import READ, UPDATE, WRITE

_MODES: Final = {(True, False): READ, (False, True): WRITE, (True, True): UPDATE}
# Loads become stores, and stores are passed over. Atomic operations stay: they read and write.
_READS_AS_WRITES: Final = {
    "tt.load": "tt.store",
    "tt.descriptor_load": "tt.descriptor_store",
    "tt.store": "passed over",
    "tt.descriptor_store": "passed over",
}

_Modes = dict[str, int]
_found: Final[dict[tuple[object, ...], _Modes | None]] = {}


def modes(kernel: Any, arguments: dict[str, Any]) -> _Modes | None:
    """Returns how a kernel touches each tensor that it is given, by argument name.

    A tensor that it does not touch is left out.

    Args:
        kernel: a function made by `triton.jit`.
        arguments: what it is called with, by name, with those that have a default.

    Returns:
        None if the code could not be read.
    """
    key = (kernel, *(_kind(value) for value in arguments.values()))
    if key not in _found:
        try:
            _found[key] = _read(kernel, arguments)
        except Exception:
            # torch and Triton raise whatever they meet: what they cannot read is not known.
            _found[key] = None
    return _found[key]


def _kind(value: object) -> object:
    """What the code of a kernel may depend on."""
    if isinstance(value, torch.Tensor):
        return value.dtype
    # A number that is no constant makes another kernel when it is 1, and its name is the same.
    return type(value), repr(value) if isinstance(value, (bool, int, str)) else id(type(value))


def _read(kernel: Any, arguments: dict[str, Any]) -> _Modes:
    analysis: Any = importlib.import_module("torch._higher_order_ops.triton_kernel_wrap")
    module, names = analysis.generate_ttir(kernel, dict(arguments), {})
    functions = analysis.ttir_to_functions(module)
    written = _changed(analysis, functions, len(names))
    swapped = {
        name: {
            result: [
                dataclasses.replace(step, name=_READS_AS_WRITES.get(step.name, step.name)) for step in steps
            ]
            for result, steps in function.items()
        }
        for name, function in functions.items()
    }
    read = _changed(analysis, swapped, len(names))
    touched = zip(names, read, written, strict=True)
    return {name: _MODES[reads, writes] for name, reads, writes in touched if reads or writes}


def _changed(analysis: Any, functions: Any, count: int) -> list[bool]:
    # What was found in another kernel is kept by the names of functions.
    analysis.analyze_kernel_mutations.reset()
    analysis.get_tma_stores.reset()
    changed: list[bool] = analysis.analyze_kernel_mutations(functions, next(iter(functions)), count)
    return changed
