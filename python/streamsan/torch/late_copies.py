"""Copies that the virtual device does late: those that an operator is ordered after, before it computes."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Final

import torch

# As the device library reads it.
ON: Final = os.environ.get("STREAMSAN_DELAY_COPIES") == "1"

_before: Any = None


def before_work(device: int) -> None:
    """Does the copies that work of the current stream of a device is ordered after.

    Nothing waits here: copies that no wait orders before this work are left for later.
    """
    native: Any = torch._C
    before_work_of(native._cuda_getCurrentRawStream(device), device)


def before_work_of(stream: int, device: int) -> None:
    """Likewise for work of a stream, which is named by its handle."""
    global _before
    if _before is None:
        # The device library is preloaded, so its names are the process's.
        function = ctypes.CDLL(None).streamsan_copies_before
        function.argtypes = (ctypes.c_uint64, ctypes.c_uint32)
        function.restype = ctypes.c_int
        _before = function
    _before(stream, device)
