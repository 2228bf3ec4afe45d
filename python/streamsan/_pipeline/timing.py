"""Times of a sample of items, from CUDA's own events."""

from __future__ import annotations

from statistics import median

import torch


class Sample:
    """The first items of a pipeline are timed; their events cost a few microseconds each."""

    SIZE = 12
    FIRST = 2

    def __init__(self) -> None:
        """Starts without times."""
        self._clocks: list[list[torch.cuda.Event]] = []
        self._times: list[tuple[float, float, float]] | None = None
        self._left = self.SIZE

    def wants(self, index: int) -> bool:
        """Whether an item is to be timed: not the very first ones, which warm things up."""
        return self.FIRST <= index and self._left > 0

    @property
    def enough(self) -> int:
        """The first item after the sample."""
        return self.FIRST + self.SIZE

    def is_ready(self) -> bool:
        """Whether all timed items have left the device, so that to ask for their times does not wait."""
        return bool(self._clocks) and all(clock[5].query() for clock in self._clocks)

    def took(self, clock: list[torch.cuda.Event]) -> None:
        """The six events of an item were recorded: begin and end of upload, function, download."""
        self._left -= 1
        self._clocks.append(clock)

    def medians(self) -> tuple[float | None, float | None, float | None]:
        """Seconds of upload, function and download; `None` without a sample. Everything has finished."""
        if self._times is None:
            # A slot's events are recorded again by its next item: only the last times are still there.
            clocks = {id(clock): clock for clock in self._clocks}.values()
            try:
                self._times = [
                    (
                        clock[0].elapsed_time(clock[1]) / 1e3,
                        clock[2].elapsed_time(clock[3]) / 1e3,
                        clock[4].elapsed_time(clock[5]) / 1e3,
                    )
                    for clock in clocks
                ]
            except RuntimeError:
                self._times = []
        if not self._times:
            return None, None, None
        columns = list(zip(*self._times, strict=True))
        return median(columns[0]), median(columns[1]), median(columns[2])

    def ideal(self, items: int, slots: int) -> tuple[float | None, str | None]:
        """Seconds that these stages need at best, and what limits them."""
        upload, function, download = self.medians()
        if upload is None or function is None or download is None or items == 0:
            return None, None
        handover = 3e-6
        whole = upload + function + download
        turn, bound = max(
            (upload, "the upload"),
            (function, "the function"),
            (download, "the download"),
            ((whole + 3 * handover) / slots, "the number of slots"),
        )
        return whole + 2 * handover + (items - 1) * turn, bound
