"""Checking traces that were recorded before."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamsan import _core
from streamsan._errors import TraceError
from streamsan._report import Report, from_texts

Stamps = tuple[tuple[int, int], ...]


def check(
    *traces: str | os.PathLike[str],
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    advice: bool = False,
) -> Report:
    """Checks recorded traces, such as those of the ranks of one job.

    Args:
        *traces: Files that `streamsan run` wrote.
        select: Report only these rules: codes, names, or the start of a code, such as `SS1`.
        ignore: Do not report these rules.
        advice: Say too what the program does more of than it needs, as `streamsan advise` does: findings of
            level `note`, which `Report.ok` and `Report.errors` pass over.

    Returns:
        What was found. It is made of plain values: the traces may go.

    Raises:
        FileNotFoundError: if there is no such file; other `OSError` if it cannot be read.
        TraceError: if a file is no trace that can be read.
        ValueError: if there is no such rule, or no trace is named.

    Example:
        >>> import streamsan
        >>> report = streamsan.check("bad.sstrace")
        >>> [str(frame) for frame in report.findings[0].second.stack]
        ['bad.sim:4']
        >>> len(streamsan.check("bad.sstrace", ignore=["SS101"]))
        0
        >>> [finding.rule for finding in streamsan.check("fixed.sstrace", advice=True).findings]
        []
    """
    if not traces:
        raise ValueError("name at least one trace")
    paths = tuple(os.fspath(trace) for trace in traces)
    request: dict[str, Any] = {"select": list(select), "ignore": list(ignore), "advice": advice}
    return checked(paths, request)


def checked(paths: tuple[str, ...], request: dict[str, Any]) -> Report:
    """Checks, with what the native check is to be told besides the paths."""
    stamps = _stamps(paths)
    texts, mistakes = _core.check(list(paths), **request)
    for file, line, message in mistakes:
        warnings.warn_explicit(message, UserWarning, file, line)
    return from_texts(paths, texts, request, stamps)


def render_again(paths: tuple[str, ...], stamps: Stamps, request: dict[str, Any], format: str) -> str:
    """Makes a report in a further format, from the traces as they were."""
    if format not in _core.formats():
        known = ", ".join(_core.formats())
        raise ValueError(f"no format is called {format!r}; there are {known}")
    if _stamps(paths) != stamps:
        raise TraceError(f"{', '.join(paths)} changed since it was checked; check it again")
    return _core.render(list(paths), format, **request)


def format_of(path: str | os.PathLike[str]) -> str:
    """Returns the format that a file name ends in."""
    suffix = Path(path).suffix.removeprefix(".").lower()
    formats = _core.suffixes()
    if suffix not in formats:
        known = ", ".join(f".{known}" for known in formats)
        raise ValueError(f"the name {os.fspath(path)} tells no format; end it in one of {known}")
    return formats[suffix]


def _stamps(paths: tuple[str, ...]) -> Stamps:
    def stamp(path: str) -> tuple[int, int]:
        status = os.stat(path)
        return status.st_size, status.st_mtime_ns

    return tuple(stamp(path) for path in paths)
