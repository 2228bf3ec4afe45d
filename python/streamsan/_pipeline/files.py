"""Files as sources and sinks of pipelines: tensors that are read when needed, and one file of results."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import torch

from streamsan import _core
from streamsan._errors import StreamsanError
from streamsan._pipeline.items import flatten

_SAFETENSORS = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "U16": torch.uint16,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I32": torch.int32,
    "U32": torch.uint32,
    "F32": torch.float32,
    "F64": torch.float64,
    "I64": torch.int64,
    "U64": torch.uint64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}


@dataclasses.dataclass(frozen=True)
class FileTensor:
    """A tensor that lies in a file, row after row. As an item it is read straight into page-locked memory.

    Attributes:
        path: The file.
        shape: Its shape.
        dtype: Its type.
        offset: Where in the file it begins, in bytes.
    """

    path: str | os.PathLike[str]
    shape: torch.Size
    dtype: torch.dtype
    offset: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        size: int = self.shape.numel() * self.dtype.itemsize
        return size

    def __getitem__(self, rows: slice) -> FileTensor:
        """Some of its rows, one behind the other."""
        begin, end, step = rows.indices(self.shape[0] if self.shape else 0)
        if not self.shape or step != 1:
            raise IndexError(f"only rows that lie one behind the other can be taken, not [{rows}]")
        length = self.nbytes // self.shape[0] if self.shape[0] else 0
        shape = torch.Size((max(end - begin, 0), *self.shape[1:]))
        return FileTensor(self.path, shape, self.dtype, self.offset + begin * length)

    def read_into(self, target: torch.Tensor) -> None:
        """Reads it into a contiguous tensor of the CPU of the same shape and type.

        Raises:
            OSError: if the file cannot be read, or ends too early.
        """
        if self.nbytes == 0:
            return
        buffer = (ctypes.c_char * self.nbytes).from_address(target.data_ptr())
        view = memoryview(buffer).cast("B")
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self.offset)
            done = 0
            while done < self.nbytes:
                count = file.readinto(view[done:])
                if not count:
                    raise OSError(
                        f"{os.fspath(self.path)} ends after {self.offset + done} bytes: a tensor of "
                        f"{self.nbytes} bytes begins at {self.offset}"
                    )
                done += count
        if _core.recording():
            _core.mark("read")
            try:
                _core.record_host_access(target, True)
            finally:
                _core.clear_context()

    def read(self) -> torch.Tensor:
        """Returns it as a tensor of the CPU."""
        target = torch.empty(self.shape, dtype=self.dtype)
        self.read_into(target)
        return target


def read_records(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    shape: Sequence[int],
    dtype: torch.dtype,
    *,
    offset: int = 0,
) -> list[FileTensor]:
    """Returns the records of raw files, one behind the other in each file, as items of a pipeline.

    Args:
        paths: A file, or several.
        shape: The shape of a record.
        dtype: Its type.
        offset: Bytes before the first record of each file.

    Raises:
        StreamsanError: if a file does not hold a whole number of records.

    Example:
        >>> import pathlib, streamsan, tempfile, torch
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "numbers.raw")
        >>> _ = path.write_bytes(bytes(range(12)))
        >>> records = streamsan.read_records(path, (2, 3), torch.uint8)
        >>> [record.read().tolist() for record in records]
        [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]
        >>> streamsan.pipeline(lambda x: x.sum(1), records)  # doctest: +CUDA
        [tensor([ 3, 12]), tensor([21, 30])]
        >>> folder.cleanup()
    """
    size = torch.Size(shape)
    length = size.numel() * dtype.itemsize
    if length == 0:
        raise StreamsanError(f"records of shape {list(shape)} have no bytes")
    found: list[FileTensor] = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        bytes_left = os.stat(path).st_size - offset
        if bytes_left < 0 or bytes_left % length:
            raise StreamsanError(
                f"{os.fspath(path)} has {bytes_left} bytes from {offset} on, which is no whole number of "
                f"records of {length} bytes ({dtype} {list(shape)})"
            )
        found += [
            FileTensor(path, size, dtype, begin) for begin in range(offset, offset + bytes_left, length)
        ]
    return found


def read_safetensors(path: str | os.PathLike[str]) -> dict[str, FileTensor]:
    """Returns the tensors of a safetensors file by name, without reading them.

    Raises:
        StreamsanError: if the file is no such file, or has a type that torch does not have.
    """
    name = os.fspath(path)
    size = os.stat(path).st_size
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise StreamsanError(f"{name} is no safetensors file: its header is longer than the file")
        try:
            header = json.loads(file.read(length))
            found = {}
            for key, entry in header.items():
                if key == "__metadata__":
                    continue
                begin, end = entry["data_offsets"]
                tensor = FileTensor(
                    path, torch.Size(entry["shape"]), _SAFETENSORS[entry["dtype"]], 8 + length + begin
                )
                if tensor.nbytes != end - begin or tensor.offset + tensor.nbytes > size:
                    raise StreamsanError(f"{name}: tensor {key!r} does not lie where the header says")
                found[key] = tensor
        except KeyError as error:
            raise StreamsanError(f"{name}: a field or type of its header is not known: {error}") from error
        except (ValueError, TypeError, AttributeError) as error:
            raise StreamsanError(f"{name} is no safetensors file: {error}") from error
    return found


class FileSink:
    """Writes results to a file, one behind the other, as the argument ``out`` of a pipeline.

    What was written is the results of the first items in order, and after a kill at most a part of one more:
    a program that is killed can go on from there. A failed item ends the writing, since later results would
    take its place.

    Attributes:
        offsets: Where the result of each item begins, in bytes, and where the last one ends.

    Example:
        >>> import pathlib, streamsan, tempfile, torch
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "doubled.raw")
        >>> items = [torch.full((3,), item, dtype=torch.uint8) for item in range(2)]
        >>> with streamsan.FileSink(path) as sink:  # doctest: +CUDA
        ...     _ = streamsan.pipeline(lambda x: x * 2, items, out=sink)
        >>> list(path.read_bytes())  # doctest: +CUDA
        [0, 0, 0, 2, 2, 2]
        >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Opens the file; what was in it is gone."""
        self._file: IO[bytes] = open(path, "wb", buffering=0)
        self.path = Path(path)
        self.offsets = [0]

    def __call__(self, index: int, value: Any) -> None:
        """Writes the tensors of a result.

        Raises:
            StreamsanError: if an item before has no result.
        """
        if index != len(self.offsets) - 1:
            raise StreamsanError(
                f"item {len(self.offsets) - 1} has no result: {self.path} ends with the items before it"
            )
        leaves: list[torch.Tensor] = []
        flatten(value, leaves)
        end = self.offsets[-1]
        for leaf in leaves:
            left = memoryview(leaf.contiguous().reshape(-1).view(torch.uint8).numpy())
            while left:
                left = left[self._file.write(left) or 0 :]
            end += leaf.nbytes
        self.offsets.append(end)

    def __enter__(self) -> FileSink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
