"""Random numbers of the virtual device.

An operator that draws on a device generator draws from a host generator instead, seeded from the seed and
the offset of the device generator, whose offset then moves on. So numbers depend on seed and offset alone:
`torch.manual_seed` and saving and restoring the generator's state work as on a GPU. The numbers themselves
are not those of a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import torch

# What a CUDA kernel advances the offset by must be a multiple of 4.
_STEP: Final = 4
_MASK: Final = (1 << 64) - 1


def _mix(seed: int, offset: int) -> int:
    """One well-mixed number from two (the finalizer of splitmix64)."""
    value = (seed + offset * 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return (value ^ (value >> 31)) & (_MASK >> 1)


def find(args: tuple[object, ...], kwargs: dict[str, object]) -> torch.Generator | None:
    """Returns the generator among the arguments, if there is one."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Generator):
            return value
    return None


@contextmanager
def drawing(device: int, given: torch.Generator | None) -> Iterator[torch.Generator]:
    """Seeds the host's default generator for one operator and restores it afterwards."""
    torch.cuda.init()
    source = (
        given if given is not None and given.device.type == "cuda" else torch.cuda.default_generators[device]
    )
    host = torch.default_generator
    state = host.get_state()
    offset = source.get_offset()
    host.manual_seed(_mix(source.initial_seed(), offset))
    try:
        yield host
    finally:
        host.set_state(state)
        source.set_offset(offset + _STEP)


def replace(args: list[object], kwargs: dict[str, object], host: torch.Generator | None) -> None:
    """Puts another generator in the place of those among the arguments."""
    for position, value in enumerate(args):
        if isinstance(value, torch.Generator):
            args[position] = host
    if isinstance(kwargs.get("generator"), torch.Generator):
        kwargs["generator"] = host
