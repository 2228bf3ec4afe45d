"""What a pipeline returns."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Statistics:
    """What a pipeline did.

    Attributes:
        items: Items that were handed out, failed ones included.
        failed: Those that failed.
        bytes_up: Bytes copied to the device.
        bytes_down: Bytes copied from the device.
        seconds: From the first item to the last result.
        slots: How many items were on the device at once, at most.
        device_bytes: Device memory of the slots. The function's own tensors are not in it.
        pinned_bytes: Page-locked host memory of the staging buffers, and what was locked in place.
        upload: Seconds of one item's upload, the median of a sample; `None` if not measured.
        function: Seconds of one item's function on the device, likewise.
        download: Seconds of one item's download, likewise.
        ideal: Seconds that these stages need at best with these slots; `None` if not measured.
        bound: What limits a pipeline with these stages, as text.
    """

    items: int
    failed: int
    bytes_up: int
    bytes_down: int
    seconds: float
    slots: int
    device_bytes: int
    pinned_bytes: int
    upload: float | None = None
    function: float | None = None
    download: float | None = None
    ideal: float | None = None
    bound: str | None = None

    @property
    def items_per_second(self) -> float:
        """Items a second; 0 if nothing ran."""
        return self.items / self.seconds if self.seconds > 0 else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes a second, both directions together; 0 if nothing ran."""
        return (self.bytes_up + self.bytes_down) / self.seconds if self.seconds > 0 else 0.0

    def __str__(self) -> str:
        """A few lines for people."""
        lines = [
            f"{self.items} items in {self.seconds:.3f} s: {self.items_per_second:.0f} items/s, "
            f"{self.bytes_per_second / 1e9:.1f} GB/s both ways together",
            f"{self.slots} slots, {_size(self.device_bytes)} of device memory, "
            f"{_size(self.pinned_bytes)} of page-locked host memory",
        ]
        if self.upload is not None and self.function is not None and self.download is not None:
            lines.append(
                f"an item: upload {self.upload * 1e3:.3f} ms, function {self.function * 1e3:.3f} ms, "
                f"download {self.download * 1e3:.3f} ms"
            )
        if self.ideal is not None:
            lines.append(f"at best {self.ideal:.3f} s, limited by {self.bound}")
        if self.failed:
            lines.append(f"{self.failed} items failed")
        return "\n".join(lines)


class Results(list[Any]):
    """The results in the order of the items, `None` for an item that failed or was given to ``out``.

    Attributes:
        statistics: What the pipeline did.
    """

    statistics: Statistics


def _size(count: int) -> str:
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
