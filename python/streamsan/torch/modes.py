"""Which dispatch mode a process has: one that computes on the virtual device, or one that watches a GPU."""

from __future__ import annotations

from streamsan import _core
from streamsan.torch.mode import StreamMode
from streamsan.torch.observe import ObserveMode


def make_mode() -> ObserveMode:
    """Makes the mode of the calling thread."""
    return StreamMode() if _core.is_virtual() else ObserveMode()
