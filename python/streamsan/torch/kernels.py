"""Libraries of fused kernels, which are off on the virtual device: composite operators then come apart into
operators that have host kernels.

The program still finds the settings as it made them.
"""

from __future__ import annotations

from typing import Any

import torch

# Setter, getter, and the value that torch works with.
_SETTINGS = (
    ("_set_cudnn_enabled", "_get_cudnn_enabled", False),
    ("_set_sdp_use_flash", "_get_flash_sdp_enabled", False),
    ("_set_sdp_use_mem_efficient", "_get_mem_efficient_sdp_enabled", False),
    ("_set_sdp_use_cudnn", "_get_cudnn_sdp_enabled", False),
    ("_set_sdp_use_math", "_get_math_sdp_enabled", True),
)


def keep_to_plain_kernels() -> None:
    """Turns the libraries off, and keeps what the program sets to itself."""
    native: Any = torch._C
    for setter, getter, value in _SETTINGS:
        if hasattr(native, setter) and hasattr(native, getter):
            _pretend(native, setter, getter, value)
    # This one holds the functions themselves.
    cudnn: Any = torch.backends.cudnn
    type(cudnn).enabled = torch.backends.ContextProp(native._get_cudnn_enabled, native._set_cudnn_enabled)
    native._jit_override_can_fuse_on_gpu(False)


def _pretend(native: Any, setter: str, getter: str, value: bool) -> None:
    shown = getattr(native, getter)()
    getattr(native, setter)(value)

    def set_shown(enabled: bool) -> None:
        nonlocal shown
        shown = bool(enabled)

    def get_shown() -> bool:
        return bool(shown)

    setattr(native, setter, set_shown)
    setattr(native, getter, get_shown)
