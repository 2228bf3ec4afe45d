"""The exceptions that streamsan raises."""

from __future__ import annotations


class StreamsanError(Exception):
    """Base of all exceptions of streamsan."""


class TraceError(StreamsanError):
    """A trace cannot be read."""


class CaptureError(StreamsanError):
    """This process cannot be recorded."""


class HazardError(StreamsanError):
    """Hazards were found. The report is the exception's text and its `report` attribute."""

    def __init__(self, report: object) -> None:
        """Keeps the report."""
        super().__init__(str(report))
        self.report = report
