"""Hashes of bytes as they are at a point of a stream, taken behind the back of torch's allocator."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch

from streamsan.torch import late_copies

Key = tuple[int, str, int]

_LONGEST: Final = 4 << 20
_ROOM: Final = 256 << 20
_COPY_BY_ADDRESS: Final = 4
_COPY_TO_HOST: Final = 2


class Bytes(NamedTuple):
    """A range of memory."""

    address: int
    length: int
    on_stream: bool
    """Whether a stream may be at work on it: device memory, and page-locked memory of the host."""


def bytes_of(values: Iterable[Any]) -> Iterator[Bytes]:
    """The memory of plain tensors, from their first byte to their last, but no more than 4 MiB of each."""
    for value in values:
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.numel() == 0:
            continue
        if value.is_cuda or value.device.type == "cpu":
            last = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
            length = min((last + 1) * value.element_size(), _LONGEST)
            yield Bytes(value.data_ptr(), length, value.is_cuda or value.is_pinned())


class Snapshots:
    """Copies bytes in stream order to memory of its own, and hashes them at the end.

    On the virtual device, whose memory is the host's, the bytes are hashed at once, after the copies that the
    stream's work is ordered after.
    """

    def __init__(self) -> None:
        """Takes no memory yet."""
        self.virtual: Final = os.environ.get("STREAMSAN_DEVICE") == "virtual"
        self._hashes: list[tuple[Key, str]] = []
        self._copies: list[tuple[Key, int, int, int]] = []
        self._room: dict[int, int] = {}
        self._used: dict[int, int] = {}
        self._runtime: Any = None

    def prepare(self, device: int) -> bool:
        """Takes memory on a device, before anything is timed: `cudaMalloc` may wait for the device.

        Returns:
            Whether it did now.
        """
        if device < 0 or device in self._room or self.virtual:
            return False
        if self._runtime is None:
            self._runtime = _runtime()
        address = ctypes.c_void_p()
        with torch.cuda.device(device):
            failed = self._runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(_ROOM))
        # Without room there are no snapshots of this device; its output is still compared.
        self._room[device] = 0 if failed else address.value or 0
        self._used[device] = 0 if self._room[device] else _ROOM
        return True

    def take(self, key: Key, parts: Iterable[Bytes], stream: int, device: int) -> None:
        """Notes the bytes as they are when the stream has done what was issued to it so far."""
        for part in parts:
            if device < 0 or not part.on_stream:
                self._hash(key, part)
            elif self.virtual:
                late_copies.before_work_of(stream, device)
                self._hash(key, part)
            else:
                self._copy(key, part, stream, device)

    def _hash(self, key: Key, part: Bytes) -> None:
        self._hashes.append((key, _digest(ctypes.string_at(part.address, part.length))))

    def _copy(self, key: Key, part: Bytes, stream: int, device: int) -> None:
        offset = self._used[device]
        if offset + part.length > _ROOM:
            return
        target = self._room[device] + offset
        failed = self._runtime.cudaMemcpyAsync(
            ctypes.c_void_p(target),
            ctypes.c_void_p(part.address),
            ctypes.c_size_t(part.length),
            _COPY_BY_ADDRESS,
            ctypes.c_void_p(stream),
        )
        if failed:
            # Or torch would find it and blame the next operation.
            self._runtime.cudaGetLastError()
            return
        self._used[device] = -(-(offset + part.length) // 256) * 256
        self._copies.append((key, device, target, part.length))

    def finish(self) -> list[tuple[Key, str]]:
        """Waits for the devices and returns the hash of each snapshot."""
        for key, device, address, length in self._copies:
            host = ctypes.create_string_buffer(length)
            with torch.cuda.device(device):
                torch.cuda.synchronize(device)
                failed = self._runtime.cudaMemcpy(
                    host, ctypes.c_void_p(address), ctypes.c_size_t(length), _COPY_TO_HOST
                )
            if not failed:
                self._hashes.append((key, _digest(host.raw)))
        self._copies.clear()
        return self._hashes


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _runtime() -> ctypes.CDLL:
    """Returns the CUDA runtime that torch uses, which is loaded already."""
    named = os.environ.get("STREAMSAN_RUNTIME")
    if named:
        return ctypes.CDLL(named)
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.rpartition(" ")[2]
        if "/libcudart.so" in path:
            return ctypes.CDLL(path)
    raise RuntimeError("torch's libcudart.so is not loaded: is this the CUDA build of torch?")
