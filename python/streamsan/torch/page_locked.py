"""Page-locked host memory: where it is made, and where pointers to it are given away."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import torch
import torch.utils.dlpack
from torch._ops import OpOverload

from streamsan import _core
from streamsan.torch import op_tables
from streamsan.torch.plans import Operator

# Methods that give a pointer away.
_ESCAPES: Final = ("numpy", "__dlpack__")
# Methods that give one away too, but which libraries call to compare addresses.
_ESCAPES_OF_THE_USER: Final = ("data_ptr", "storage", "untyped_storage")

_storage_address: Callable[[Any], int] = torch._C.StorageBase.data_ptr
_storage_of: Callable[[torch.Tensor], torch.UntypedStorage] = torch._C.TensorBase.untyped_storage


def make(
    recorder: _core.ThreadRecorder,
    operator: Operator,
    func: OpOverload,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Runs an operator of the host that makes page-locked memory, or may give a tensor other such memory."""
    before = _storage_address(_storage_of(args[0])) if operator.name in op_tables.RESIZES else None
    _core.handing_out(True)
    try:
        out = func(*args, **kwargs)
    finally:
        _core.handing_out(False)
    if before is None or _storage_address(_storage_of(out)) != before:
        recorder.announce_page_locked(out)
    return out


def watch_pointers() -> None:
    """Wraps what gives pointers away, and what reads or moves host memory without an operator."""
    tensor: Any = torch.Tensor
    for name in (*_ESCAPES, *_ESCAPES_OF_THE_USER):
        setattr(tensor, name, _escaping(getattr(tensor, name), name, name in _ESCAPES_OF_THE_USER))
    for module in (torch, torch.utils.dlpack):
        owner: Any = module
        owner.to_dlpack = _escaping(owner.to_dlpack, "dlpack", by_user=True)
    tensor.tolist = _reading(tensor.tolist, "Tensor.tolist")
    _watch_resizing()
    _watch_saving()
    _watch_constructors()


def _escaping(function: Callable[..., Any], name: str, by_user: bool) -> Callable[..., Any]:
    label = f"{name.strip('_')}()"

    @functools.wraps(function)
    def escaping(self: Any, *args: Any, **kwargs: Any) -> Any:
        _core.escape(self, label, by_user)
        return function(self, *args, **kwargs)

    return escaping


def _reading(function: Callable[..., Any], label: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def reading(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if self.is_cuda or self.layout is not torch.strided or not self.numel():
            return function(self, *args, **kwargs)
        _core.mark(label)
        try:
            _core.record_host_access(self, False)
            return function(self, *args, **kwargs)
        finally:
            _core.clear_context()

    return reading


def _watch_constructors() -> None:
    """Wraps what makes tensors of Python values: it uploads and page-locks without an operator."""
    for owner, names in ((torch, ("tensor", "as_tensor", "asarray")), (torch.Tensor, ("new_tensor",))):
        for name in names:
            setattr(owner, name, _making(getattr(owner, name)))


def _making(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def making(*args: Any, **kwargs: Any) -> Any:
        page_locks = bool(kwargs.get("pin_memory"))
        _core.mark()
        if page_locks:
            _core.handing_out(True)
        try:
            made = function(*args, **kwargs)
            if page_locks:
                _core.announce_page_locked(made)
            return made
        finally:
            if page_locks:
                _core.handing_out(False)
            _core.clear_context()

    return making


def _watch_resizing() -> None:
    storage: Any = torch.UntypedStorage
    resize = storage.resize_

    @functools.wraps(resize)
    def resizing(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.device.type != "cpu" or not _core.has_page_locked():
            return resize(self, *args, **kwargs)
        before = _storage_address(self)
        _core.mark()
        try:
            out = resize(self, *args, **kwargs)
            after = _storage_address(self)
            if after != before:
                _core.host_block(after, self.nbytes())
            return out
        finally:
            _core.clear_context()

    storage.resize_ = resizing


def _watch_saving() -> None:
    """Records what `torch.save` reads."""
    writer: Any = torch._C.PyTorchFileWriter
    write = writer.write_record

    @functools.wraps(write)
    def saving(self: Any, name: str, data: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(data, torch.UntypedStorage) and data.device.type == "cpu" and _core.has_page_locked():
            _core.mark("torch.save")
            try:
                _core.record_host_bytes(_storage_address(data), data.nbytes(), False)
            finally:
                _core.clear_context()
        return write(self, name, data, *args, **kwargs)

    writer.write_record = saving
