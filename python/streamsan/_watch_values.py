"""Values that the program shows, to be compared between runs."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

from streamsan._marks import recorder

if TYPE_CHECKING:
    import torch

_Watched = TypeVar("_Watched", bound="torch.Tensor")

# Set by `streamsan run --one-stream`.
_FILE: Final = "STREAMSAN_WATCH"

_lock = threading.Lock()


def watch(tensor: _Watched, name: str) -> _Watched:
    """Shows a value to `streamsan run --one-stream`, which compares it between its runs.

    Of a tensor on a device, the value is what an operation would see that is put on the current stream here.
    Of a tensor in host memory it is what the host sees now. Looking adds no synchronization, is not in the
    record and never makes a finding. In any other run this does nothing.

    Args:
        tensor: A tensor with plain strided memory. Others are noted without their value.
        name: What reports call the value. It can be used again: the first value of a name is compared with
            the first value of that name in the other run, the second with the second.

    Returns:
        The same tensor.

    Example:
        >>> import streamsan, torch
        >>> loss = streamsan.watch(torch.zeros(3).sum(), "loss")
        >>> float(loss)
        0.0
    """
    path = os.environ.get(_FILE)
    if path and recorder() is not None:
        line = json.dumps(_note(tensor, name, sys._getframe(1)), allow_nan=False) + "\n"
        # One write, so that lines of several processes do not mix.
        with _lock, open(path, "ab", buffering=0) as file:
            file.write(line.encode())
    return tensor


def _note(tensor: torch.Tensor, name: str, frame: Any) -> dict[str, object]:
    note: dict[str, object] = {
        "name": name,
        "rank": os.environ.get("RANK", ""),
        "place": f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}",
        "kind": f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}",
    }
    value = _value(tensor)
    if value is None:
        return note | {"bytes": "", "numbers": "no plain memory"}
    if value.nbytes == 0:
        return note | {"bytes": "", "numbers": "empty"}
    raw = (ctypes.c_char * value.nbytes).from_address(value.data_ptr())
    return note | {"bytes": hashlib.blake2b(raw, digest_size=8).hexdigest(), "numbers": _numbers(value)}


def _value(tensor: torch.Tensor) -> torch.Tensor | None:
    """Returns a copy in host memory, made behind the recorder's back."""
    import torch
    from torch._C import _DisableTorchDispatch

    from streamsan.torch import late_copies
    from streamsan.torch.aliases import alias

    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type not in ("cuda", "cpu"):
        return None
    # Before the modes are off: an operator would do the same.
    if tensor.is_cuda and late_copies.ON:
        late_copies.before_work(tensor.device.index)
    with torch.no_grad(), _DisableTorchDispatch():
        host = alias(tensor) if tensor.is_cuda else tensor.detach()
        return host.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)


def _numbers(value: torch.Tensor) -> str:
    import torch
    from torch._C import _DisableTorchDispatch

    with _DisableTorchDispatch():
        if value.is_complex():
            value = torch.view_as_real(value)
        plain = value.to(torch.float64)
        if plain.numel() == 1:
            return f"{plain.item():.9g}"
        low, high = torch.aminmax(plain)
        return f"mean {plain.mean().item():.9g}, {low.item():.9g} to {high.item():.9g}"
