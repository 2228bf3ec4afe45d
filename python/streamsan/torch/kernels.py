"""Libraries of fused kernels, which are off on the virtual device.

Composite operators then come apart into operators that have host kernels.

The program finds its settings of attention as it made them. It finds cuDNN and the fast path of transformer
layers off, as torch's own Python code asks for these settings too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

# Setter, getter, and the value that torch works with.
_SETTINGS = (
    ("_set_sdp_use_flash", "_get_flash_sdp_enabled", False),
    ("_set_sdp_use_mem_efficient", "_get_mem_efficient_sdp_enabled", False),
    ("_set_sdp_use_cudnn", "_get_cudnn_sdp_enabled", False),
    ("_set_sdp_use_math", "_get_math_sdp_enabled", True),
)

# Operators that ask whether a library's kernel is to be used.
QUESTIONS: Final[dict[str, Callable[..., bool]]] = {
    "_use_cudnn_ctc_loss": lambda *_, **__: False,
    "_use_miopen_ctc_loss": lambda *_, **__: False,
}


def keep_to_plain_kernels() -> None:
    """Turns the libraries off, and keeps what the program sets to itself."""
    native: Any = torch._C
    for setter, getter, value in _SETTINGS:
        if hasattr(native, setter) and hasattr(native, getter):
            _pretend(native, setter, getter, value)
    _keep_cudnn_off(native)
    _keep_fast_path_off()
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


def _keep_cudnn_off(native: Any) -> None:
    native._set_cudnn_enabled(False)

    def leave_off(enabled: bool) -> None:
        pass

    native._set_cudnn_enabled = leave_off
    # The module holds the functions themselves.
    cudnn: Any = torch.backends.cudnn
    type(cudnn).enabled = torch.backends.ContextProp(native._get_cudnn_enabled, leave_off)


def _keep_fast_path_off() -> None:
    """Layers without gradients would work on nested tensors, which cannot be computed here."""
    layers: Any = torch.backends.mha
    layers.set_fastpath_enabled(False)

    def leave_off(value: bool) -> None:
        pass

    layers.set_fastpath_enabled = leave_off
