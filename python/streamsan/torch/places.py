"""What a place in user code can name: its statement's target, and the streams in sight."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Iterator, Mapping
from types import FrameType, FunctionType, ModuleType

import torch

from streamsan import _core
from streamsan.torch.bindings import binding, parameters
from streamsan.torch.names import assigned_name, code_of_key
from streamsan.torch.statements import Position, placement
from streamsan.torch.stream_handles import handle, name_by_sight

_LONGEST_LIST = 16


def describe_place(
    frame: FrameType, frame_id: int, file: str, line: int, end_line: int, column: int, end_column: int
) -> str | None:
    """Called once for each new position in user code.

    Tells the recorder which expressions give a stream there and before which line code can be put.

    Returns:
        The name that the statement gives to the value of the position.
    """
    arguments = parameters(frame.f_code)
    for expression, stream in _visible_streams(frame):
        found = handle(stream)
        if found is not None:
            _core.visible_stream(frame_id, *found, expression, binding(frame.f_code, file, expression))
            # An argument is another stream at each call.
            if expression not in arguments:
                name_by_sight(expression, found)
    position = Position(line, column, end_line, end_column)
    found_placement = placement(frame.f_code, frame.f_lasti, file, position)
    if found_placement is not None:
        _core.placement(frame_id, *found_placement)
    return assigned_name(file, line, end_line, column, end_column)


def _visible_streams(frame: FrameType) -> Iterator[tuple[str, torch.Stream]]:
    variables = _variables(frame)
    hidden = {name: value for name, value in dict(frame.f_globals).items() if name not in variables}
    for scope, deep in ((variables, True), (hidden, False)):
        # A comprehension has an argument `.0`, which no code can name.
        scope = {name: value for name, value in scope.items() if name.isidentifier()}
        yield from _streams_of(scope)
        for name, value in scope.items():
            attributes = _attributes(value)
            for attribute, stream in _streams_of(attributes):
                yield f"{name}.{attribute}", stream
            if not deep:
                continue
            inherited = _class_attributes(value)
            visible = {part: inherited[part] for part in inherited.keys() - attributes.keys()}
            for attribute, stream in _streams_of(visible):
                yield f"{name}.{attribute}", stream
            # As in `self.cache.stream`.
            for outer, part in attributes.items():
                for attribute, stream in _streams_of(_attributes(part)):
                    yield f"{name}.{outer}.{attribute}", stream


def _attributes(value: object) -> dict[str, object]:
    """Returns the attributes of an instance; none of modules, classes, functions, tensors."""
    if isinstance(value, (type, ModuleType, FunctionType, torch.Tensor)):
        return {}
    try:
        attributes = getattr(value, "__dict__", None)
    except Exception:
        # A proxy outside of its context.
        return {}
    return dict(attributes) if type(attributes) is dict else {}


def _class_attributes(value: object) -> dict[str, object]:
    """Returns what the class of an instance binds that can hold streams."""
    if isinstance(value, torch.Tensor) or not hasattr(value, "__dict__"):
        return {}
    holders = (torch.Stream, list, tuple, dict)
    return {name: part for name, part in vars(type(value)).items() if isinstance(part, holders)}


def _streams_of(variables: Mapping[str, object]) -> Iterator[tuple[str, torch.Stream]]:
    for name, value in variables.items():
        if isinstance(value, torch.Stream):
            yield name, value
        elif type(value) in (list, tuple) and 0 < len(value) <= _LONGEST_LIST:  # type: ignore[arg-type]
            for index, item in enumerate(value):  # type: ignore[arg-type, var-annotated]
                if isinstance(item, torch.Stream):
                    yield f"{name}[{index}]", item
        elif type(value) is dict and 0 < len(value) <= _LONGEST_LIST:
            for key, item in list(value.items()):
                if isinstance(item, torch.Stream) and type(key) in (str, int):
                    yield f"{name}[{code_of_key(key)}]", item


def _variables(frame: FrameType) -> dict[str, object]:
    """Returns the local variables without leaving references to them behind.

    Before Python 3.13 `f_locals` makes a dictionary that lives as long as the frame, which would keep tensors
    alive that the program drops. It is emptied again; if the program has already asked for it, it is left
    alone, and nothing is in sight.
    """
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED or sys.version_info >= (3, 13):
        return dict(frame.f_locals)
    if any(_is_snapshot(item, frame) for item in gc.get_referents(frame)):
        return {}
    snapshot = frame.f_locals
    variables = dict(snapshot)
    snapshot.clear()
    return variables


def _is_snapshot(candidate: object, frame: FrameType) -> bool:
    """Whether an object that a frame refers to may be its `f_locals`."""
    if type(candidate) is not dict or candidate is frame.f_globals or not candidate:
        return False
    code = frame.f_code
    names = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    return all(name in names for name in candidate)
