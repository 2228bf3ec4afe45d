"""`streamsan.audit`: a call is made only if its arguments are ordered for the current stream.

Nothing here imports torch.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal, ParamSpec, TypeVar, cast, overload

from streamsan._errors import AuditError
from streamsan._marks import attached, recorder

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_READ, _WRITE, _UPDATE = 0, 1, 2
_NOTHING: Final = object()


@overload
def audit(function: Callable[Parameters, Result], /) -> Callable[Parameters, Result]: ...


@overload
def audit(
    *,
    reads: Iterable[str] | None = None,
    writes: Iterable[str] = (),
    lifetime: Literal["record"] | None = None,
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]: ...


def audit(
    function: Any = _NOTHING,
    /,
    *,
    reads: Iterable[str] | None = None,
    writes: Iterable[str] = (),
    lifetime: Literal["record"] | None = None,
) -> Any:
    """Raises before a call if a tensor among its arguments is not safe to use on the current stream.

    At each call, for each tensor that is passed, also inside of tuples, lists and dicts: is everything that
    was enqueued before and conflicts with its use ordered before what the current stream of its device does
    next? That is decided by happens-before, from the recorded program up to the call; timing plays no part.
    It covers the memory: earlier owners of the tensor's bytes that were freed too early, memory that is freed
    already, and copies to or from page-locked tensors that are still pending.

    What is not proved. The owner of a tensor's memory has to learn of this use before the last reference
    goes: that happens after the call and is checked at the end of the run (SS202, SS203), unless
    `lifetime="record"` asks for `record_stream` now. Tensors that the function gets in another way
    (attributes, globals, defaults), streams that it changes to, and its results are not looked at. Waits that
    the function makes itself come too late: they belong before the call. A tensor without plain strided bytes
    is passed over.

    Without a recorder (a program not started with `streamsan run` or `pytest --streamsan`) the function
    itself is returned: nothing is checked and nothing is paid; see `auditing`. Coroutines and generators are
    audited when they begin to run; async generators, and everything else, when they are called.

    Args:
        function: The function; the decorator can be used without parentheses.
        reads: Names of the parameters that are read. Default: all.
        writes: Names of the parameters that are written: then nobody may be reading them either.
        lifetime: With `"record"`, a tensor whose memory was allocated on another stream than the current one
            must have been given to `record_stream` for the current one.

    Returns:
        The function with the audit before it.

    Raises:
        ValueError: at the definition, if the function has no such parameter.
        TypeError: at the definition, if it is no function.
        AuditError: at a call, before anything of it is done.

    Example:
        >>> import streamsan
        >>> @streamsan.audit(writes=["out"])
        ... def scale(x, out):
        ...     out.copy_(x * 2)
        >>> @streamsan.audit(writes=["ouput"])
        ... def shift(x, output):
        ...     output.copy_(x + 1)
        Traceback (most recent call last):
            ...
        ValueError: shift() has no parameter 'ouput'; did you mean 'output'?
    """
    if isinstance(reads, str) or isinstance(writes, str):
        raise TypeError('reads= and writes= take a list of names, such as writes=["out"]')
    if lifetime not in (None, "record"):
        raise ValueError(f'lifetime= is "record" or left out, not {lifetime!r}')
    chosen = None if reads is None else frozenset(reads)
    if function is _NOTHING:
        return lambda function: _decorate(function, chosen, frozenset(writes), lifetime)
    return _decorate(function, chosen, frozenset(writes), lifetime)


def auditing() -> bool:
    """Returns whether calls of audited functions are checked in this process.

    Example:
        >>> import streamsan
        >>> streamsan.auditing()
        False
    """
    return recorder() is not None


def _decorate(
    function: Any, reads: frozenset[str] | None, writes: frozenset[str], lifetime: str | None
) -> Any:
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_decorate(function.__func__, reads, writes, lifetime))
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"only functions can be audited, and this is {function!r}")
    plan = _Plan(function, reads, writes, lifetime)
    # It does not begin later: the recorder is there from the start of the process.
    if recorder() is None and not attached():
        return function
    return _wrapped(function, plan)


def _wrapped(function: Any, plan: _Plan) -> Any:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            plan.check(args, kwargs)
            return await function(*args, **kwargs)

        return coroutine
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            plan.check(args, kwargs)
            return (yield from function(*args, **kwargs))

        return generator

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        plan.check(args, kwargs)
        return function(*args, **kwargs)

    return call


class _Plan:
    """What is to be looked at in calls of one function."""

    def __init__(
        self, function: Any, reads: frozenset[str] | None, writes: frozenset[str], lifetime: str | None
    ) -> None:
        self._reads, self._writes = reads, writes
        self._lifetime = lifetime == "record"
        self._function: str = getattr(function, "__qualname__", repr(function)).rpartition("<locals>.")[2]
        self._label = f"{self._function}()"
        self._positional: list[tuple[str, int]] = []
        self._rest: tuple[str, int] | None = None
        self._doubted = False
        names, open_ended = list[str](), False
        for name, parameter in inspect.signature(function).parameters.items():
            names.append(name)
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                self._positional.append((name, self._mode(name)))
            elif parameter.kind is parameter.VAR_POSITIONAL:
                self._rest = (name, self._mode(name))
            elif parameter.kind is parameter.VAR_KEYWORD:
                open_ended = True
        for name in (*(reads or ()), *writes):
            if name not in names and not open_ended:
                close = get_close_matches(name, names, 1)
                hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(map(repr, names))}"
                raise ValueError(f"{self._label} has no parameter {name!r}; {hint}")

    def _mode(self, name: str) -> int:
        """How a parameter is used; -1 if it is not to be looked at."""
        read = self._reads is None or name in self._reads
        if name in self._writes:
            return _UPDATE if read else _WRITE
        return _READ if read else -1

    def _tensors(
        self, tensor: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> list[tuple[str, Any, int]]:
        found: list[tuple[str, Any, int]] = []
        for (name, mode), value in zip(self._positional, args, strict=False):
            if mode >= 0:
                _collect(tensor, value, name, mode, found)
        if self._rest is not None and self._rest[1] >= 0:
            _collect(tensor, args[len(self._positional) :], *self._rest, found)
        for name, value in kwargs.items():
            mode = self._mode(name)
            if mode >= 0:
                _collect(tensor, value, name, mode, found)
        return found

    def check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raises if an argument is not safe to use now."""
        core = recorder()
        torch: Any = sys.modules.get("torch")
        if core is None or torch is None:
            return
        tensors = self._tensors(torch.Tensor, args, kwargs)
        if tensors:
            _ask(core, torch, self, tensors)

    def ask(self, core: Any, torch: Any, tensors: list[tuple[str, Any, int]]) -> None:
        """Raises if one of these tensors is not safe to use now."""
        from streamsan._session import monitor

        device: int = torch.cuda.current_device() if any(not one[1].is_cuda for one in tensors) else 0
        arguments = [(one, mode, self._lifetime) for _, one, mode in tensors]
        answer = core.audit(monitor.live(core), monitor.catch_up, self._label, device, arguments)
        if answer is None:
            self._doubt()
            return
        told, json, concise = answer
        if told:
            raise self._error(core, tensors, told, json, concise)

    def _doubt(self) -> None:
        if not self._doubted:
            self._doubted = True
            warnings.warn(
                f"a call of {self._label} could not be audited: another thread is inside of a CUDA call "
                "that came before, so the order is not known yet. It was let through; the report judges it",
                UserWarning,
                stacklevel=5,
            )

    def _error(
        self,
        core: Any,
        tensors: list[tuple[str, Any, int]],
        told: list[tuple[int, tuple[str, str] | None, str]],
        json: str,
        concise: str,
    ) -> AuditError:
        from streamsan._report import from_texts

        # One report for several tensors with the same text: parts of one buffer.
        by_text: dict[str, list[str]] = {}
        for index, streams, text in told:
            name = tensors[index][0]
            if streams is not None:
                text = _unkept(name, self._label, *streams)
            by_text.setdefault(text, []).append(name)
        unsafe = list(dict.fromkeys(tensors[index][0] for index, _, _ in told))
        count = "1 argument is" if len(unsafe) == 1 else f"{len(unsafe)} arguments are"
        parts = [f"{self._label} was not called: {count} not safe to use on the current stream"]
        for text, names in by_text.items():
            parts.append(
                f"argument{'s' * (len(names) > 1)} {', '.join(f'`{name}`' for name in names)}:\n{text}"
            )
        full = "\n\n".join(parts)
        texts = {"full": full, "concise": concise, "json": json, "summary": parts[0]}
        report = from_texts((str(core.trace_path()),), texts, {}, ())
        return AuditError(report, self._function, tuple(unsafe))


def _ask(core: Any, torch: Any, plan: _Plan, tensors: list[tuple[str, Any, int]]) -> None:
    global _outside
    if _outside is _Plan.ask and "torch._dynamo" in sys.modules:
        # The compiler breaks its graph here; what is asked has no place in one.
        _outside = cast(Any, torch.compiler.disable(_Plan.ask))
    _outside(plan, core, torch, tensors)


_outside: Any = _Plan.ask


def _collect(tensor: type, value: Any, name: str, mode: int, found: list[tuple[str, Any, int]]) -> None:
    if isinstance(value, tensor):
        found.append((name, value, mode))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _collect(tensor, item, f"{name}[{index}]", mode, found)
    elif isinstance(value, dict):
        for key, item in value.items():
            _collect(tensor, item, f"{name}[{key!r}]", mode, found)


def _unkept(name: str, label: str, owner: str, user: str) -> str:
    return (
        f"error: its memory was allocated on {owner}, and record_stream was not called for {user}, which is "
        "about to use it\n"
        f"  help: at the start of {label}: {name}.record_stream(torch.cuda.current_stream())\n"
        f'  note: asked for by lifetime="record"; without it, {owner} may as well wait for {user} before the '
        "last reference goes"
    )
