"""Times of a sample of loads, from CUDA's own events."""

from __future__ import annotations

from statistics import median

import torch

from streamsan import _core


class Sample:
    """The first loads of a pipeline are timed; their events cost a few microseconds each."""

    SIZE = 12
    FIRST = 2

    def __init__(self) -> None:
        """Starts without times."""
        self._clocks: dict[int, tuple[list[torch.cuda.Event], int]] = {}
        self._times: list[tuple[float, float, float]] | None = None
        self._left = self.SIZE

    def wants(self, number: int) -> bool:
        """Whether a load is to be timed: not the very first ones, which warm things up."""
        return self.FIRST <= number and self._left > 0

    def took(self, clock: list[torch.cuda.Event], items: int) -> None:
        """The events of a load of some items were recorded: begin and end of upload, function, download."""
        self._left -= 1
        # A slot's events are recorded again by its next load: only the last times are still there.
        self._clocks[id(clock)] = clock, items

    def end(self) -> None:
        """Reads the times and lets go of the events. Everything has finished."""
        self.medians()
        self._clocks.clear()

    def medians(self) -> tuple[float | None, float | None, float | None]:
        """Seconds of upload, function and download; `None` without a sample. Everything has finished."""
        if self._times is None:
            try:
                self._times = [
                    (
                        clock[0].elapsed_time(clock[1]) / 1e3 / items,
                        clock[2].elapsed_time(clock[3]) / 1e3 / items,
                        clock[4].elapsed_time(clock[5]) / 1e3 / items,
                    )
                    for clock, items in self._clocks.values()
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
        return _core.ideal_pipeline(upload, function, download, items, slots)
