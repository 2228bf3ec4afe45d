"""Copies that cross devices: plain ones are torch's own, others are taken apart as torch takes them apart."""

from __future__ import annotations

from dataclasses import dataclass
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


def any_crosses(self: list[torch.Tensor], src: list[torch.Tensor], non_blocking: bool = False) -> bool:
    """Whether one of several copies goes from one device to another: torch then does one after the other."""
    return any(target.device != source.device for target, source in zip(self, src, strict=False))


def copy_each(self: list[torch.Tensor], src: list[torch.Tensor], non_blocking: bool = False) -> None:
    """Does several copies as torch does them. To be called with the mode on."""
    for target, source in zip(self, src, strict=True):
        target.copy_(source, non_blocking)


def copy_in_steps(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Copies with temporaries. To be called with the mode on: each step is an operator."""
    if operator.name == "copy_":
        source, non_blocking = source_of(args, kwargs)
        _copy(args[0], source, non_blocking)
        return args[0]
    target, non_blocking = make_target(args[0], kwargs)
    if target.dtype == args[0].dtype and moves_plainly(args[0], target):
        return target.copy_(args[0], non_blocking)
    _copy(target, args[0], non_blocking)
    return target


def source_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[torch.Tensor, bool]:
    """Returns the source of `copy_`, and whether the host is not to wait."""
    source = args[1] if len(args) > 1 else kwargs["src"]
    return source, bool(args[2]) if len(args) > 2 else bool(kwargs.get("non_blocking", False))


def make_target(source: torch.Tensor, kwargs: dict[str, Any]) -> tuple[torch.Tensor, bool]:
    """Makes the result of `_to_copy`, still to be filled, and tells whether the host is not to wait."""
    device = torch.device(kwargs["device"])
    non_blocking = bool(kwargs.get("non_blocking"))
    # A download without waiting goes to page-locked memory.
    pinned = bool(kwargs.get("pin_memory")) or (non_blocking and source.is_cuda and device.type == "cpu")
    memory_format = kwargs.get("memory_format")
    target = torch.empty_like(
        source,
        dtype=kwargs.get("dtype"),
        device=device,
        pin_memory=pinned,
        memory_format=torch.preserve_format if memory_format is None else memory_format,
    )
    return target, non_blocking


def moves_plainly(source: torch.Tensor, target: torch.Tensor) -> bool:
    """Whether the bytes of a source lie as those of a new target of the same type."""
    return (
        target.stride() == source.stride() and is_dense(source) and not (source.is_neg() or source.is_conj())
    )


@dataclass(frozen=True, slots=True)
class Temporaries:
    """Which ends of a copy between devices have a temporary beside them."""

    source: bool
    """What is moved is a temporary, made of the source where that lies."""
    target: bool
    """What is moved lands in a temporary where the target lies, of which the target is then made."""
    convert_first: bool
    """The type is changed where the source lies."""


def temporaries(source: torch.Tensor, target: torch.Tensor, non_blocking: bool) -> Temporaries:
    """Returns what torch makes for a copy that is not plain."""
    same_type = source.dtype == target.dtype
    # On the device if the host is not to wait.
    convert_first = source.is_cuda == non_blocking
    moved = source.shape == target.shape and source.is_contiguous()
    return Temporaries(
        source=not (moved and (same_type or not convert_first)),
        target=not (target.is_contiguous() and (same_type or convert_first)),
        convert_first=convert_first,
    )


def _copy(target: torch.Tensor, source: torch.Tensor, non_blocking: bool) -> None:
    needed = temporaries(source, target, non_blocking)
    moved_type = target.dtype if needed.convert_first else source.dtype
    landing = torch.empty(target.shape, dtype=moved_type, device=target.device) if needed.target else target
    departing = source.to(moved_type).expand_as(target).resolve_conj().resolve_neg().contiguous()
    if landing is target and departing is source:
        raise NotImplementedError("a copy between devices that cannot be taken apart")
    landing.copy_(departing, non_blocking)
    if landing is not target:
        target.copy_(landing, non_blocking)
