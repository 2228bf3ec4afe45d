"""The exceptions that streamsan raises. What is wrong with a file is a builtin `OSError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamsan._report import Report


class StreamsanError(Exception):
    """Base of all exceptions of streamsan.

    Example:
        >>> import streamsan
        >>> issubclass(streamsan.HazardError, streamsan.StreamsanError)
        True
    """


class TraceError(StreamsanError):
    """A file was read, and it is no trace that can be checked.

    Example:
        >>> import pathlib, streamsan
        >>> _ = pathlib.Path("notes.sstrace").write_text("no trace")
        >>> try:
        ...     streamsan.check("notes.sstrace")
        ... except streamsan.TraceError as error:
        ...     print(error)
        cannot read notes.sstrace: it is not a streamsan trace (it does not start with SSTRACE)
    """


class CaptureError(StreamsanError):
    """This process cannot be recorded, or nothing was recorded.

    Example:
        >>> import streamsan
        >>> try:
        ...     with streamsan.sanitize():
        ...         pass
        ... except streamsan.CaptureError as error:
        ...     print("not recorded")
        not recorded
    """


class HazardError(StreamsanError):
    """Hazards were found. The text of the exception is the report.

    Attributes:
        report: What was found.

    Example:
        >>> import streamsan
        >>> try:
        ...     streamsan.check("bad.sstrace").raise_if_errors()
        ... except streamsan.HazardError as error:
        ...     print(error.report.findings[0].rule)
        SS101
    """

    report: Report

    def __init__(self, report: Report) -> None:
        """Keeps the report."""
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        return str(self.report)
