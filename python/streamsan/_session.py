"""Parts of a running program: check one at its end, or keep a trace of it.

Both need a process that is recorded, as `streamsan run` starts it.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import warnings
from collections.abc import Sequence
from contextlib import ContextDecorator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from streamsan._errors import CaptureError, HazardError
from streamsan._marks import attached, recorder

if TYPE_CHECKING:
    from streamsan._report import Report

_REGION: Final = 0
# How long the end of a region waits for events that other threads are about to write, in seconds.
_PATIENCE: Final = 0.2
_numbers = itertools.count(1)


class sanitize(ContextDecorator):
    """Checks what is done inside, and raises at the end if there are hazards.

    A hazard counts if the later of its two operations was issued inside, by any thread; the earlier one may
    lie before. So the block sees what other threads do meanwhile. Blocks may be nested or overlap in time;
    each judges its own part. An exception that leaves the block wins: then nothing is raised here, and
    `Session.report` has what was found.

    The check reads the trace that the process writes. At the end of the block it has caught up; a block
    without errors costs no more than checking its events. Can also be used as a decorator.

    What is an error is what the project says: `error` and `warn` of `[tool.streamsan]`. Its other settings
    are for commands; give `select` and `ignore` here.

    Args:
        select: Only these rules: codes, names, or the start of a code.
        ignore: Not these rules.

    Returns:
        On entry, the session whose `report` is there when the block has ended.

    Raises:
        CaptureError: at the start, if this process is not recorded.
        ValueError: at the start, if the project's settings are not as they should be.
        HazardError: at the end, if there are errors. Its text is the report.

    Example:
        >>> import streamsan
        >>> with streamsan.sanitize() as session:  # doctest: +DEVICE
        ...     step(batch)
        >>> session.report.ok  # doctest: +DEVICE
        True
    """

    def __init__(self, *, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> None:
        """Keeps what to check."""
        self._select = list(select)
        self._ignore = list(ignore)
        self._session: Session | None = None

    def _recreate_cm(self) -> sanitize:
        return sanitize(select=self._select, ignore=self._ignore)

    def __enter__(self) -> Session:
        core = _recorded("sanitize")
        self._session = Session(core, self._select, self._ignore)
        return self._session

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        suspicious = session._end()
        if kind is not None or not suspicious:
            return
        report = session.report
        if report.errors:
            raise HazardError(report)


class Session:
    """What one `sanitize` block has seen.

    Example:
        >>> import streamsan
        >>> with streamsan.sanitize() as session:  # doctest: +DEVICE
        ...     step(batch)
        >>> len(session.report)  # doctest: +DEVICE
        0
    """

    def __init__(self, core: Any, select: list[str], ignore: list[str]) -> None:
        """Begins the part that is checked."""
        self._core = core
        self._request: dict[str, Any] = {"select": select, "ignore": ignore}
        self._trace: str = os.fspath(core.trace_path())
        self._report: Report | None = None
        self._operations: int = core.operations_recorded()
        self.suspicious = False
        self.first = monitor.enter(self)
        self.last: int | None = None

    @property
    def report(self) -> Report:
        """What was found in the block.

        Made when it is asked for, from the trace, which has to be there still.

        Raises:
            RuntimeError: while the block runs.
        """
        if self.last is None:
            raise RuntimeError("the block still runs: its report is there when it has ended")
        if self._report is None:
            from streamsan._check import checked

            part = {"region": (self.first, self.last), "configured": True}
            self._report = checked((self._trace,), {**self._request, **part})
        return self._report

    def _end(self) -> bool:
        """Ends the part. Whether there may be errors in it."""
        self.last = monitor.leave(self)
        if self._core.operations_recorded() == self._operations:
            warnings.warn(
                "no CUDA operation was recorded inside of this block, so nothing was checked",
                UserWarning,
                stacklevel=3,
            )
        return self.suspicious


class _Monitor:
    """The one live check of the process, which all sessions share."""

    def __init__(self) -> None:
        # A destructor that runs in here may call an audited function.
        self._lock = threading.RLock()
        self._live: Any = None
        self._open: list[Session] = []

    def enter(self, session: Session) -> int:
        """Returns the number of the first event of the session."""
        core = session._core
        with self._lock:
            self.live(core)
            self._advance(core.settle())
            # What an earlier session has found would not be new in this one.
            self._live.forget_findings()
            first: int = core.settle() + 1
            core.range_begin(_REGION, f"streamsan.sanitize {next(_numbers)}")
            self._open.append(session)
        return first

    def leave(self, session: Session) -> int:
        """Returns the number of the last event of the session."""
        core = session._core
        core.range_end(_REGION)
        with self._lock:
            last: int = core.settle()
            complete = self._advance(last)
            self._open.remove(session)
            complete = complete and not self._live.leaves_out_errors()
        # Another thread may take a while to write what it has begun, and some rules look at every execution
        # of a line. Then the report decides.
        session.suspicious |= not complete
        return last

    def live(self, core: Any) -> Any:
        """Returns the live check; the first call makes it, at the beginning of the trace."""
        with self._lock:
            if self._live is None:
                self._live = core.Live(core.trace_path(), configured=True)
            return self._live

    def catch_up(self, to: int) -> bool:
        """Checks up to this event. Whether it came so far."""
        with self._lock:
            return self._advance(to)

    def _advance(self, to: int) -> bool:
        """Checks up to this event, and tells the sessions of errors. Whether it came so far."""
        complete: bool
        found, complete = self._live.catch_up(to, _PATIENCE)
        for _number, _rule, is_error, _line in found:
            for session in self._open:
                session.suspicious |= is_error
        return complete


monitor = _Monitor()


class record(ContextDecorator):
    """Writes a trace of what is done inside to a file of its own.

    The process has to be recorded already. The file holds all that was recorded up to the end of the block,
    since what happened before decides what is ordered, and marks the block: findings and counts of `check`
    are those of the block.

    Args:
        path: The file, such as `step.sstrace`.
        overwrite: Replace a file that is there.

    Raises:
        CaptureError: at the start, if this process is not recorded.
        FileExistsError: at the start, if the file is there.
        OSError: at the end, if it cannot be written.

    Example:
        >>> import streamsan
        >>> with streamsan.record("step.sstrace"):  # doctest: +DEVICE
        ...     step(batch)
        >>> streamsan.check("step.sstrace").ok  # doctest: +DEVICE
        True
    """

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Keeps where to write."""
        self._path = os.path.abspath(os.fspath(path))
        self._overwrite = overwrite
        self._first = 0

    def _recreate_cm(self) -> record:
        return record(self._path, overwrite=self._overwrite)

    def __enter__(self) -> None:
        core = _recorded("record")
        if os.path.exists(self._path) and not self._overwrite:
            raise FileExistsError(
                17, "the file is there; choose another name or say overwrite=True", self._path
            )
        self._first = core.settle() + 1
        core.range_begin(_REGION, f"streamsan.record {os.path.basename(self._path)}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        core = recorder()
        if core is None:
            return
        core.range_end(_REGION)
        # Beside it first: whoever reads the file never finds a part of it.
        new = f"{self._path}.{os.getpid()}.new"
        core.write_excerpt(core.trace_path(), new, self._first, core.settle())
        os.replace(new, self._path)


def _recorded(what: str) -> Any:
    """Returns the native module.

    Raises:
        CaptureError: if this process is not recorded.
    """
    core = recorder()
    if core is None:
        if attached():
            raise CaptureError(
                f"streamsan.{what}() cannot be used here: the recording of this process has ended, "
                "or it was forked from one that is recorded; processes that are spawned are recorded"
            )
        raise CaptureError(
            f"streamsan.{what}() needs a program that is recorded from its start, and this process is not: "
            f"start it as `{_command()}`"
        )
    return core


def _command() -> str:
    """Returns the command that starts this program so that it is recorded."""
    main = sys.modules.get("__main__")
    program = os.path.basename(sys.argv[0]) if sys.argv else ""
    if "pytest" in sys.modules:
        return "pytest --streamsan"
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return f"streamsan run -m {spec.name.removesuffix('.__main__')}"
    return f"streamsan run {program if program.endswith('.py') else 'script.py'}"
