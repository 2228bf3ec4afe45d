"""Whether tensors can be read without Python."""

from __future__ import annotations

import torch

from streamsan import _core


def read_natively() -> bool:
    """Has tensors read through torch's C interface, if that agrees with Python on a few of them."""
    base = torch.arange(24, dtype=torch.float64).reshape(2, 3, 4)
    return _core.read_tensors_natively(
        [
            base,
            base[:, 1:].transpose(0, 2),
            base[0, 0, 2],
            torch.empty(0, dtype=torch.bool),
            torch.nn.Parameter(torch.empty(5, 2, dtype=torch.bfloat16)),
        ]
    )
