"""Operators that torch runs with all modes off, such as those that print a tensor.

An operator that does not come through the mode is not seen; on the virtual device it computes nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.utils._python_dispatch as python_dispatch

from streamsan.torch.observe import ObserveMode

# torch's own way to turn all modes off.
_native: Any = python_dispatch
ALL_OFF: Any = _native._disable_current_modes


def keep_mode_on() -> None:
    """Makes torch's way to turn all modes off leave ours on."""

    @functools.wraps(ALL_OFF)
    @contextmanager
    def disable_others(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with ALL_OFF(*args, **kwargs) as disabled:
            own = next((mode for mode in disabled or () if isinstance(mode, ObserveMode)), None)
            if own is None:
                yield disabled
            else:
                with own:
                    yield disabled

    _native._disable_current_modes = disable_others
