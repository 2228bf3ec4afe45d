"""Host tensors over the bytes of device tensors: on the virtual device, device memory is host memory."""

from __future__ import annotations

from typing import Final

import torch

from streamsan import _core

_HOST: Final = torch.device("cpu")
_CAPACITY: Final = 8192
_UNSUPPORTED_CALL: Final = 1

_Key = tuple[object, ...]

_storages: dict[tuple[int, int], torch.UntypedStorage] = {}
_tensors: dict[_Key, torch.Tensor] = {}


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the host tensor over the bytes of a device tensor.

    It does not own them: it is to be used while the device tensor lives. Tensors over the same address with
    the same layout share one alias.
    """
    try:
        storage = tensor.untyped_storage()
    except NotImplementedError:
        _refuse_unless_plain(tensor)
        raise
    key = (
        storage.data_ptr(),
        storage.nbytes(),
        tensor.storage_offset(),
        tensor.shape,
        tensor.stride(),
        tensor.dtype,
        tensor.is_neg(),
        tensor.is_conj(),
    )
    found = _tensors.get(key)
    if found is None:
        found = _make(tensor, storage)
        if len(_tensors) >= _CAPACITY:
            _tensors.clear()
            _storages.clear()
        _tensors[key] = found
    return found


def _make(tensor: torch.Tensor, storage: torch.UntypedStorage) -> torch.Tensor:
    _refuse_unless_plain(tensor)
    # An alias outlives the block it was made in: it must not be an inference tensor.
    with torch.inference_mode(False):
        found = torch.empty(0, dtype=tensor.dtype)
        if storage.nbytes() == 0:
            found = found.new_empty_strided(tensor.shape, tensor.stride())
        else:
            found.set_(_host_storage(storage), tensor.storage_offset(), tensor.shape, tensor.stride())
        if tensor.is_conj():
            found = torch._conj(found)
        if tensor.is_neg():
            found = torch._neg_view(found)
    return found


def _refuse_unless_plain(tensor: torch.Tensor) -> None:
    if tensor.layout is torch.strided and not tensor.is_quantized:
        return
    kind = "quantized" if tensor.layout is torch.strided else str(tensor.layout).removeprefix("torch.")
    _core.gap(_UNSUPPORTED_CALL, f"{kind} tensors")
    raise NotImplementedError(f"{kind} tensors are not modelled by streamsan's virtual device")


def _host_storage(storage: torch.UntypedStorage) -> torch.UntypedStorage:
    key = (storage.data_ptr(), storage.nbytes())
    found = _storages.get(key)
    if found is None:
        found = torch._C._construct_storage_from_data_pointer(key[0], _HOST, key[1])
        _storages[key] = found
    return found


def room_for(result: torch.Tensor, device: int, dense: bool) -> torch.Tensor:
    """Returns a new device tensor for the bytes of a result, made on the device's current stream."""
    target = torch.device("cuda", device)
    if dense or 0 not in result.stride():
        return torch.empty_strided(result.shape, result.stride(), dtype=result.dtype, device=target)
    return torch.empty(result.shape, dtype=result.dtype, device=target)


def upload(result: torch.Tensor, device: int) -> torch.Tensor:
    """Returns a new device tensor with the bytes of a host tensor, made on the device's current stream."""
    _refuse_unless_plain(result)
    dense = is_dense(result)
    real = room_for(result, device, dense)
    if result.numel() == 0:
        return real
    # A tensor of forward differentiation that stands for zeros has no memory.
    if dense and not (result.is_conj() or result.is_neg() or result._is_zerotensor()):
        _core.copy_bytes(real.data_ptr(), result.data_ptr(), result.nbytes)
    else:
        alias(real).copy_(result)
    return real


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the tensor's elements fill one piece of memory without holes or overlap."""
    if tensor.is_contiguous():
        return True
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True
