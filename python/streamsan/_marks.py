"""What a program says of itself: names, what a kernel touches, what is not to be reported.

All of it does nothing, and costs next to nothing, in a process that is not recorded. Nothing here imports
torch.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import ContextDecorator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from streamsan._tasks import Level, inside, now_inside

if TYPE_CHECKING:
    import torch

_Named = TypeVar("_Named", bound="torch.Tensor | torch.Stream")

_TRACE: Final = "STREAMSAN_TRACE"
_IGNORE: Final = 1
_READ, _WRITE, _UPDATE = 0, 1, 2
_RULE: Final = re.compile(r"SS\d{3}|[a-z]+(-[a-z]+)+")

# Words that look like rules, from earlier calls.
_seen: set[str] = set()

_attached: bool | None = None


def recorder() -> Any:
    """Returns the native module if this process is recorded, else None."""
    global _attached
    if _attached is None:
        # The variable is there from the start of a process that is recorded.
        _attached = _TRACE in os.environ and _attach()
    if not _attached:
        return None
    from streamsan import _core

    return _core if _core.recording() else None


def attached() -> bool:
    """Returns whether there was a recorder when it was asked for; it may have stopped since."""
    return bool(_attached)


def _attach() -> bool:
    from streamsan import _core

    return _core.attach()


def name(subject: _Named, name: str) -> _Named:
    """Gives a stream or a tensor the name that reports call it by.

    Without it a stream or a tensor has the name of the variable that it was first assigned to.

    Args:
        subject: A stream, or a tensor on a device or in page-locked memory. The name is that of the tensor's
            whole memory, which views share.
        name: The name.

    Returns:
        The same object, so that it can be named where it is made.

    Raises:
        TypeError: if it is neither a stream nor a tensor, in a process that is recorded.

    Example:
        >>> import streamsan, torch
        >>> side = streamsan.name(torch.cuda.Stream(), "upload")  # doctest: +DEVICE
    """
    core = recorder()
    if core is not None:
        _tell_name(core, subject, name)
    return subject


def _tell_name(core: Any, subject: Any, name: str) -> None:
    import torch

    if isinstance(subject, torch.Stream):
        from streamsan.torch.stream_handles import handle

        found = handle(subject)
        if found is not None:
            core.name_stream(*found, name, True)
    elif isinstance(subject, torch.Tensor):
        core.name_tensor(subject, name)
    else:
        raise TypeError(f"only streams and tensors have names, and this is a {type(subject).__name__}")


class annotate(ContextDecorator):
    """Says what kernels touch that streamsan cannot know: of an extension, of Triton, of CuPy.

    Each kernel that is launched inside, by this thread or task and outside torch's own operators, is recorded
    with these accesses instead of as a gap (SS902). If no launch is seen inside, one operation on the stream
    that is current at the end stands for what was done. On the virtual device such kernels still compute
    nothing.

    Can also be used as a decorator.

    Args:
        reads: Tensors that are read.
        writes: Tensors that are written. One that is in both is read before it is written.
        label: What to call the operation if no launch is seen.

    Example:
        >>> import streamsan, torch
        >>> x, y = torch.ones(4), torch.empty(4)
        >>> with streamsan.annotate(reads=[x], writes=[y]):
        ...     pass  # my_extension.scale(x, y)
    """

    def __init__(
        self,
        *,
        reads: Iterable[torch.Tensor] = (),
        writes: Iterable[torch.Tensor] = (),
        label: str = "annotated kernel",
    ) -> None:
        """Keeps what is said."""
        self._reads = tuple(reads)
        self._writes = tuple(writes)
        self._label = label

    def _recreate_cm(self) -> annotate:
        return annotate(reads=self._reads, writes=self._writes, label=self._label)

    def __enter__(self) -> None:
        core = recorder()
        if core is not None:
            now = inside()
            level = Level(self._accesses())
            seen = core.annotate(level.accesses)
            if now.levels:
                now.levels[-1].launches += seen
            now_inside(now._replace(levels=(*now.levels, level)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        now = inside()
        core = recorder() if now.levels else None
        if core is None:
            return
        *levels, level = now.levels
        level.launches += core.annotate(levels[-1].accesses if levels else None)
        now_inside(now._replace(levels=tuple(levels)))
        if level.launches == 0 and kind is None:
            core.record_annotated(self._label, level.accesses)

    def _accesses(self) -> list[tuple[torch.Tensor, int]]:
        written = {id(tensor) for tensor in self._writes}
        read = {id(tensor) for tensor in self._reads}
        accesses = [(tensor, _READ) for tensor in self._reads if id(tensor) not in written]
        accesses += [(tensor, _UPDATE if id(tensor) in read else _WRITE) for tensor in self._writes]
        return accesses


def annotated() -> bool:
    """Returns whether what runs on the calling thread is inside an `annotate`."""
    return bool(inside().levels)


class ignore(ContextDecorator):
    """Leaves out findings of some rules, and counts them.

    A hazard is left out if one of its two operations was issued inside, by the thread or the task of asyncio
    that is inside. What an autograd engine does for a `backward()` called inside counts as inside, and so do
    tasks that are made inside. Reports say how much was left out and why; an ignore that left out nothing is
    reported as SS903. For single lines there is a comment: `# streamsan: ignore[SS101] reason`.

    Can also be used as a decorator of functions that are not `async`.

    Args:
        *rules: Codes or names of rules, such as `"SS101"`.
        reason: Why this is no hazard. People who read the code will ask.

    Raises:
        ValueError: if no rule is named, a word is no rule, or the reason is empty.

    Example:
        >>> import streamsan
        >>> with streamsan.ignore("SS101", reason="the extension waits for its own event"):
        ...     pass
        >>> streamsan.ignore("SS1O1", reason="a slip")
        Traceback (most recent call last):
            ...
        ValueError: 'SS1O1' is no rule; `streamsan explain rules` lists them
    """

    def __init__(self, *rules: str, reason: str) -> None:
        """Checks what is said, recorded or not."""
        if not rules:
            raise ValueError('name the rules to ignore, such as ignore("SS101", reason="...")')
        for rule in rules:
            if rule not in _seen:
                if not _RULE.fullmatch(rule):
                    raise ValueError(f"{rule!r} is no rule; `streamsan explain rules` lists them")
                _seen.add(rule)
        if not reason.strip():
            raise ValueError(f"say why {', '.join(rules)} can be ignored here: the reason is empty")
        self._rules = rules
        self._reason = reason
        # As the recorder knows them: where it was entered, and what it says.
        self._entered: list[tuple[int, int]] = []

    def _recreate_cm(self) -> ignore:
        return ignore(*self._rules, reason=self._reason)

    def __enter__(self) -> None:
        core = recorder()
        if core is not None:
            for rule in self._rules:
                if not core.is_rule(rule):
                    raise ValueError(f"{rule!r} is no rule; `streamsan explain rules` lists them")
            core.range_begin(_IGNORE, f"{','.join(self._rules)} {' '.join(self._reason.split())}")
            entered = tuple(core.ignores_here())
            self._entered.append(entered[-1])
            now_inside(inside()._replace(ignores=entered))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        core = recorder()
        if core is None or not self._entered:
            return
        entered, now = self._entered.pop(), inside()
        if now.ignores[-1:] == (entered,):
            core.range_end(_IGNORE)
            now_inside(now._replace(ignores=now.ignores[:-1]))
        elif entered in now.ignores:
            left = [*now.ignores]
            left.remove(entered)
            core.set_ignores(left)
            now_inside(now._replace(ignores=tuple(left)))
