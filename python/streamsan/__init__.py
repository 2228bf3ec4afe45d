"""streamsan finds missing synchronization between CUDA streams.

The command `streamsan run script.py` is the way in. Importing this package loads neither torch nor the
native module.
"""

from __future__ import annotations

from streamsan._errors import CaptureError, HazardError, StreamsanError, TraceError

__all__ = ["CaptureError", "HazardError", "StreamsanError", "TraceError", "__version__"]


def __getattr__(name: str) -> object:
    """Looks the version up when it is asked for: the metadata module costs more than this package."""
    if name == "__version__":
        from importlib.metadata import version

        return version("streamsan")
    raise AttributeError(f"module 'streamsan' has no attribute {name!r}")
