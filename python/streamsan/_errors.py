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


class AuditError(HazardError):
    """A call of a function decorated with `streamsan.audit` was not made.

    Attributes:
        report: What is not ordered, and as its text each argument, the operation that it is not
            ordered after, and what to insert. Its fixes are not verified.
        function: The function.
        arguments: The tensors that are not safe to use, such as `batch` or `batch['x']`.

    Example:
        >>> import streamsan
        >>> issubclass(streamsan.AuditError, streamsan.HazardError)
        True
    """

    function: str
    arguments: tuple[str, ...]

    def __init__(self, report: Report, function: str, arguments: tuple[str, ...]) -> None:
        """Keeps what is wrong."""
        super().__init__(report)
        self.function = function
        self.arguments = arguments

    def __reduce__(self) -> tuple[type[AuditError], tuple[Report, str, tuple[str, ...]]]:
        return type(self), (self.report, self.function, self.arguments)
