"""A line of progress on a terminal; nothing elsewhere."""

from __future__ import annotations

import sys
import time


class Progress:
    """Writes how far a pipeline is, a few times a second, if standard error is a terminal."""

    def __init__(self, wanted: bool, total: int | None) -> None:
        """Starts at item 0 of ``total``, if that is known."""
        self._on = wanted and sys.stderr is not None and sys.stderr.isatty()
        self._total = total
        self._begin = self._last = time.monotonic()
        self._shown = False

    def __call__(self, items: int, moved: int) -> None:
        """``items`` have their results, ``moved`` bytes were copied for them."""
        if not self._on:
            return
        now = time.monotonic()
        # Short runs show nothing: a line that flashes by helps nobody.
        if now - self._last < 0.2 or now - self._begin < 0.5:
            return
        self._last, self._shown = now, True
        elapsed = now - self._begin
        of = f"/{self._total}" if self._total is not None else ""
        left = ""
        if self._total is not None and items:
            left = f"  {elapsed / items * (self._total - items):.0f} s left"
        rate = f"{items / elapsed:.0f} items/s  {moved / elapsed / 1e9:.1f} GB/s"
        sys.stderr.write(f"\r\x1b[K{items}{of} items  {rate}{left}")
        sys.stderr.flush()

    def end(self) -> None:
        """Takes the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
