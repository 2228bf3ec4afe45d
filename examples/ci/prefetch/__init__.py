"""Uploads the next batch on a stream of its own while the current one is used."""

from collections.abc import Iterable, Iterator

import torch


class Prefetcher:
    """Iterates over batches on the device. The next one is on its way while one is used."""

    def __init__(self, batches: Iterable[torch.Tensor]) -> None:
        self._batches = iter(batches)
        self._upload = torch.cuda.Stream()
        self._next = self._start()

    def __iter__(self) -> Iterator[torch.Tensor]:
        return self

    def __next__(self) -> torch.Tensor:
        batch = self._next
        if batch is None:
            raise StopIteration
        torch.cuda.current_stream().wait_stream(self._upload)
        batch.record_stream(torch.cuda.current_stream())
        self._next = self._start()
        return batch

    def _start(self) -> torch.Tensor | None:
        batch = next(self._batches, None)
        if batch is None:
            return None
        with torch.cuda.stream(self._upload):
            return batch.to("cuda", non_blocking=True).div_(255)


class RunningMean:
    """The mean of all batches so far, computed on a stream of its own."""

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()
        self._sum = torch.zeros((), device="cuda")
        self._count = 0
        self._stream.wait_stream(torch.cuda.current_stream())

    def add(self, batch: torch.Tensor) -> None:
        self._stream.wait_stream(torch.cuda.current_stream())
        batch.record_stream(self._stream)
        with torch.cuda.stream(self._stream):
            self._sum += batch.mean()
        self._count += 1

    def value(self) -> torch.Tensor:
        torch.cuda.current_stream().wait_stream(self._stream)
        return self._sum / self._count
