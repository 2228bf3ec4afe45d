"""streamsan finds missing synchronization between CUDA streams.

The command `streamsan run script.py` is the way in. Importing this package loads neither torch nor the
native module.

PYTEST_DONT_REWRITE: a process that is recorded imports this before pytest comes, which would be told.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from streamsan._errors import AuditError, CaptureError, HazardError, StreamsanError, TraceError

if TYPE_CHECKING:
    from streamsan._audit import audit as audit
    from streamsan._audit import auditing as auditing
    from streamsan._check import check as check
    from streamsan._marks import annotate as annotate
    from streamsan._marks import ignore as ignore
    from streamsan._marks import name as name
    from streamsan._pipeline import FileSink as FileSink
    from streamsan._pipeline import FileTensor as FileTensor
    from streamsan._pipeline import ItemError as ItemError
    from streamsan._pipeline import PipelineError as PipelineError
    from streamsan._pipeline import Results as Results
    from streamsan._pipeline import Statistics as Statistics
    from streamsan._pipeline import page_lock as page_lock
    from streamsan._pipeline import pipeline as pipeline
    from streamsan._pipeline import prefetch as prefetch
    from streamsan._pipeline import read_records as read_records
    from streamsan._pipeline import read_safetensors as read_safetensors
    from streamsan._report import Advice as Advice
    from streamsan._report import Coverage as Coverage
    from streamsan._report import Edge as Edge
    from streamsan._report import Finding as Finding
    from streamsan._report import Fix as Fix
    from streamsan._report import Frame as Frame
    from streamsan._report import Gap as Gap
    from streamsan._report import Ignored as Ignored
    from streamsan._report import Memory as Memory
    from streamsan._report import Place as Place
    from streamsan._report import Reach as Reach
    from streamsan._report import Report as Report
    from streamsan._session import Session as Session
    from streamsan._session import record as record
    from streamsan._session import sanitize as sanitize
    from streamsan._streams import GraphError as GraphError
    from streamsan._streams import ManagedStream as ManagedStream
    from streamsan._streams import StreamGraph as StreamGraph
    from streamsan._watch_values import watch as watch

    __version__: str

__all__ = [
    "Advice",
    "AuditError",
    "CaptureError",
    "Coverage",
    "Edge",
    "FileSink",
    "FileTensor",
    "Finding",
    "Fix",
    "Frame",
    "Gap",
    "GraphError",
    "HazardError",
    "Ignored",
    "ItemError",
    "ManagedStream",
    "Memory",
    "PipelineError",
    "Place",
    "Reach",
    "Report",
    "Results",
    "Session",
    "Statistics",
    "StreamGraph",
    "StreamsanError",
    "TraceError",
    "__version__",
    "annotate",
    "audit",
    "auditing",
    "check",
    "ignore",
    "name",
    "page_lock",
    "pipeline",
    "prefetch",
    "read_records",
    "read_safetensors",
    "record",
    "sanitize",
    "watch",
]

# Loaded when they are asked for: each test run of an environment imports this package.
_HOMES = {
    "_audit": ("audit", "auditing"),
    "_check": ("check",),
    "_marks": ("annotate", "ignore", "name"),
    "_report": (
        "Advice",
        "Coverage",
        "Edge",
        "Finding",
        "Fix",
        "Frame",
        "Gap",
        "Ignored",
        "Memory",
        "Place",
        "Reach",
        "Report",
    ),
    "_pipeline": (
        "FileSink",
        "FileTensor",
        "ItemError",
        "PipelineError",
        "Results",
        "Statistics",
        "page_lock",
        "pipeline",
        "prefetch",
        "read_records",
        "read_safetensors",
    ),
    "_session": ("Session", "record", "sanitize"),
    "_streams": ("GraphError", "ManagedStream", "StreamGraph"),
    "_watch_values": ("watch",),
}


def __getattr__(name: str) -> object:
    """Loads what is asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version("streamsan")
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"streamsan.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'streamsan' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Lists what is not loaded yet, too."""
    return sorted({*globals(), *__all__})
