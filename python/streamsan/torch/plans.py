"""What each operator touches and how it is executed, worked out once from its schema."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

import torch
from torch._ops import OpOverload

from streamsan import _core
from streamsan.torch import op_tables, readback, rows

READ, WRITE, UPDATE, METADATA = 0, 1, 2, -1

_KERNEL, _COPY_ON_DEVICE = 0, 3

_BUILT_IN = frozenset({"aten", "prim", "prims"})


class Route(enum.IntEnum):
    """How an operator on a device tensor is executed."""

    VIEW = 0
    """By torch itself; touches no bytes and allocates nothing."""
    REAL = 1
    """By torch itself; allocates, or makes runtime calls that record themselves."""
    COPY = 2
    """By torch itself if it crosses devices and is plain, else step by step."""
    COMPUTE = 3
    """On host tensors over the same bytes."""
    PARTS = 4
    """By the operators that it is made of. Such come here whole in inference mode."""
    KERNEL = 5
    """By its own kernel for the device, which calls other operators: one that the program registered."""
    GROUP = 6
    """By its own kernel for the device if that is NCCL's, else on host tensors: a collective."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator as the dispatch mode needs it."""

    name: str
    """Without namespace and overload."""
    plan: _core.Plan
    route: Route
    results: tuple[int, ...]
    """For each result the position of the argument that it is, or -1 if it is new."""
    returns: bool
    """Whether there are results."""
    host_results: frozenset[int]
    """Results that stay in host memory."""
    random: bool
    """Whether it draws random numbers."""
    argument_names: tuple[str, ...]
    """Names of all arguments."""
    out_names: tuple[str, ...]
    """Names of arguments that are replaced by the result (`out=`)."""
    may_wait: bool
    """Whether the host may wait for its stream."""
    selects: bool
    """Whether it may touch only chosen rows of its first argument."""
    copies_many: bool
    """Whether it is one call for many copies, each of which may cross devices."""


class Operators(dict[object, Operator]):
    """Operators by overload; a missing one is worked out."""

    def __missing__(self, func: OpOverload) -> Operator:
        """Works the operator out."""
        operator = self[func] = make_operator(func)
        return operator


OPERATORS: Final = Operators()
"""The operators that this process has called."""


def make_operator(func: OpOverload) -> Operator:
    """Reads the schema of an operator."""
    schema = func._schema
    name = schema.name.partition("::")[2]
    route = _route(func, name)
    # As it is recorded where it is computed on the host; NCCL's records itself.
    computed = Route.COMPUTE if route is Route.GROUP else route
    inputs = [
        (position, argument.name, _mode(name, argument))
        for position, argument in enumerate(schema.arguments)
        if "Tensor" in str(argument.type)
    ]
    results = tuple(_argument_of(schema, result) for result in schema.returns)
    fills = [position < 0 and computed in (Route.COMPUTE, Route.COPY) for position in results]
    kind = _COPY_ON_DEVICE if name == "copy_" else _KERNEL
    return Operator(
        name=name,
        plan=_core.Plan(schema.name, int(computed), kind, inputs, fills),
        route=route,
        results=results,
        returns=bool(schema.returns),
        host_results=op_tables.HOST_RESULTS.get(name, frozenset()),
        random=torch.Tag.nondeterministic_seeded in func.tags,
        argument_names=tuple(argument.name for argument in schema.arguments),
        out_names=tuple(argument.name for argument in schema.arguments if argument.is_out),
        may_wait=readback.may_wait(name, schema.overload_name),
        selects=name in rows.SELECTING,
        copies_many=name == "_foreach_copy_",
    )


def _route(func: OpOverload, name: str) -> Route:
    if name in op_tables.VIEWS:
        return Route.VIEW
    if name in op_tables.REAL:
        return Route.REAL
    if name in op_tables.COPIES:
        return Route.COPY
    if func._can_decompose():
        return Route.PARTS
    if func.namespace == "c10d":
        return Route.GROUP
    if func.namespace not in _BUILT_IN and kernel_key(func) is not None:
        return Route.KERNEL
    if _is_view(func):
        return Route.VIEW
    return Route.COMPUTE


def kernel_key(func: OpOverload) -> torch._C.DispatchKey | None:
    """Returns where the kernel of a registered operator is found, if it is to run on device tensors."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for name in ("CompositeExplicitAutograd", "CUDA"):
        if has(func.name(), name):
            # A kernel for host tensors computes the result without what the other is made of.
            if name == "CUDA" and has(func.name(), "CPU"):
                return None
            return getattr(torch._C.DispatchKey, name)
    return None


def _is_view(func: OpOverload) -> bool:
    arguments, results = func._schema.arguments, func._schema.returns
    if any(argument.alias_info is not None and argument.alias_info.is_write for argument in arguments):
        return False
    aliased = [result for result in results if result.alias_info is not None]
    return bool(aliased) and len(aliased) == len(results)


def _mode(name: str, argument: torch.Argument) -> int:
    if argument.is_out:
        return WRITE
    if name in op_tables.RESIZES:
        return METADATA
    if argument.alias_info is not None and argument.alias_info.is_write:
        return WRITE if name in op_tables.OVERWRITES else UPDATE
    if argument.name in op_tables.STATISTICS.get(name, ()):
        return UPDATE
    if name.endswith("_like") or name.startswith("new_"):
        return METADATA
    if argument.name in op_tables.METADATA_ARGUMENTS.get(name, ()):
        return METADATA
    return READ


def _argument_of(schema: torch.FunctionSchema, result: torch.Argument) -> int:
    if result.alias_info is None:
        return -1
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.before_set == result.alias_info.before_set:
            return position
    return -1
