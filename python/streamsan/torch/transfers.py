"""Copies that cross devices: plain ones are torch's own, others are taken apart as torch takes them apart."""

from __future__ import annotations

from typing import Any

import torch

from streamsan.torch.aliases import is_dense
from streamsan.torch.plans import Operator


def ends(
    operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.device, torch.device]:
    """Returns the devices of the source and of the destination."""
    if operator.name == "copy_":
        source = args[1] if len(args) > 1 else kwargs["src"]
        return source.device, args[0].device
    asked = kwargs.get("device")
    source_device: torch.device = args[0].device
    if asked is None:
        return source_device, source_device
    target = torch.device(asked)
    if target.type == "cuda" and target.index is None:
        target = torch.device("cuda", torch.cuda.current_device())
    return source_device, target


def page_locks(
    source: torch.device, target: torch.device, operator: Operator, kwargs: dict[str, Any]
) -> bool:
    """Whether torch makes page-locked memory for the result: it must be known before it is copied to."""
    return (
        operator.name == "_to_copy"
        and source.type == "cuda"
        and target.type == "cpu"
        and bool(kwargs.get("non_blocking") or kwargs.get("pin_memory"))
    )


def is_plain(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether one runtime copy moves the bytes as they lie."""
    if operator.name == "copy_":
        target, source = args[0], args[1] if len(args) > 1 else kwargs["src"]
        if (
            target.dtype != source.dtype
            or target.is_neg() != source.is_neg()
            or target.is_conj() != source.is_conj()
        ):
            return False
        if target.shape != source.shape:
            return False
        if target.is_contiguous() and source.is_contiguous():
            return True
        return bool(target.stride() == source.stride() and is_dense(target))
    source = args[0]
    if source.is_neg() or source.is_conj() or kwargs.get("dtype", source.dtype) not in (None, source.dtype):
        return False
    if kwargs.get("memory_format") in (None, torch.preserve_format):
        return is_dense(source)
    return source.is_contiguous(memory_format=kwargs["memory_format"]) and is_dense(source)


def copy_in_steps(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Copies with temporaries. To be called with the mode on: each step is an operator."""
    if operator.name == "copy_":
        source = args[1] if len(args) > 1 else kwargs["src"]
        non_blocking = bool(args[2]) if len(args) > 2 else bool(kwargs.get("non_blocking", False))
        _copy(args[0], source, non_blocking)
        return args[0]
    return _to_copy(args[0], **{name: value for name, value in kwargs.items() if value is not None})


def _to_copy(
    source: torch.Tensor,
    *,
    device: torch.device,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    pin_memory: bool = False,
    non_blocking: bool = False,
    memory_format: torch.memory_format = torch.preserve_format,
) -> torch.Tensor:
    device = torch.device(device)
    # A download without waiting goes to page-locked memory.
    pinned = pin_memory or (non_blocking and source.is_cuda and device.type == "cpu")
    target = torch.empty_like(
        source, dtype=dtype, device=device, pin_memory=pinned, memory_format=memory_format
    )
    if (
        target.dtype == source.dtype
        and target.stride() == source.stride()
        and is_dense(source)
        and not (source.is_neg() or source.is_conj())
    ):
        return target.copy_(source, non_blocking)
    _copy(target, source, non_blocking)
    return target


def _copy(target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> None:
    if target.is_cuda or non_blocking:
        # The type is changed where the source lies.
        landing = (
            target
            if target.is_contiguous()
            else torch.empty(target.shape, dtype=target.dtype, device=target.device)
        )
        departing = source.to(target.dtype).expand_as(target).resolve_conj().resolve_neg().contiguous()
    else:
        same = target.is_contiguous() and source.dtype == target.dtype
        landing = target if same else torch.empty(target.shape, dtype=source.dtype, device=target.device)
        departing = source.expand_as(target).resolve_conj().resolve_neg().contiguous()
    if landing is target and departing is source:
        raise NotImplementedError("a copy between devices that cannot be taken apart")
    landing.copy_(departing, non_blocking)
    if landing is not target:
        target.copy_(landing, non_blocking)
