"""Results of an operator that was computed on other tensors: what the program gets for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import torch

from streamsan.torch.plans import Operator

_Tensor: Final = torch.Tensor


def to_device(
    operator: Operator,
    result: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    device: int,
    make: Callable[[torch.Tensor, int], torch.Tensor],
) -> Any:
    """Returns the results as the program gets them: its own arguments, and new tensors from `make`."""
    if isinstance(result, _Tensor):
        position = operator.results[0]
        if position >= 0:
            return _argument(operator, position, args, kwargs)
        return make(result, device) if 0 not in operator.host_results and not result.is_cuda else result
    if not isinstance(result, (tuple, list)):
        return result
    single = len(operator.results) == 1
    converted = []
    for index, item in enumerate(result):
        position = operator.results[0 if single else index]
        if not isinstance(item, _Tensor):
            converted.append(item)
        elif position >= 0:
            argument = _argument(operator, position, args, kwargs)
            converted.append(argument[index] if single else argument)
        elif index in operator.host_results:
            converted.append(item)
        else:
            converted.append(make(item, device))
    return tuple(converted) if isinstance(result, tuple) else converted


def new_tensors(operator: Operator, result: Any) -> list[torch.Tensor]:
    """Returns the results for which `to_device` calls `make`, in its order."""
    if isinstance(result, _Tensor):
        return [result] if operator.results[0] < 0 and 0 not in operator.host_results else []
    if not isinstance(result, (tuple, list)):
        return []
    single = len(operator.results) == 1
    return [
        item
        for index, item in enumerate(result)
        if isinstance(item, _Tensor)
        and operator.results[0 if single else index] < 0
        and index not in operator.host_results
    ]


def _argument(operator: Operator, position: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if position < len(args):
        return args[position]
    return kwargs[operator.argument_names[position]]


def fresh(out: Any, device: torch.device) -> Any:
    """Returns an empty tensor, or a list, for an argument of `out=`: the operator gives it its shape."""
    if isinstance(out, (list, tuple)):
        return [fresh(item, device) for item in out]
    return torch.empty(0, dtype=out.dtype, device=device)


def pairs(given: list[Any], made: list[Any]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields each tensor that was given for `out=` with the one that an operator filled in its place."""
    for out, result in zip(given, made, strict=True):
        if isinstance(result, list):
            yield from zip(out, result, strict=True)
        else:
            yield out, result


def given_outs(operator: Operator, given: list[Any]) -> Any:
    """Returns what an `out=` operator returns."""
    if not operator.returns:
        return None
    return given[0] if len(given) == 1 else tuple(given)
