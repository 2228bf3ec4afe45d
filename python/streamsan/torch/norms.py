"""Arithmetic of normalizations that torch fuses on CUDA and has no host kernel for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch


def _rms_norm_backward(
    grad: torch.Tensor,
    values: torch.Tensor,
    normalized_shape: Sequence[int],
    inverse: torch.Tensor,
    weight: torch.Tensor | None,
    needed: Sequence[bool],
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """`inverse` is one over the root mean square, in the precision that torch computes with."""
    inner = list(range(values.dim() - len(normalized_shape), values.dim()))
    outer = list(range(inner[0]))
    normalized = values * inverse
    for_values = for_weight = None
    if needed[0]:
        scaled = grad if weight is None else grad * weight
        along = (scaled * normalized).mean(inner, keepdim=True)
        for_values = ((scaled - normalized * along) * inverse).to(values.dtype)
    if needed[1] and weight is not None:
        summed = grad * normalized
        for_weight = (summed.sum(outer) if outer else summed).to(weight.dtype)
    return for_values, for_weight


NORMS: Final[dict[str, Callable[..., Any]]] = {"_fused_rms_norm_backward": _rms_norm_backward}
