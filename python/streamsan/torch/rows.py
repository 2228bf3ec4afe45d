"""Which rows an index chooses: a cache whose blocks are used by number is not touched as a whole.

The virtual device computes on the host, so the numbers are at hand. On a GPU they are not, and to read them
would be a wait: there the whole tensor counts.

It also counts here for many numbers or many runs of rows, for an index whose first dimension has no
numbers, and in the capture of a graph, whose launches can meet other numbers. And where a GPU writes all
of it: an assignment of one value through a mask is `masked_fill_`, which writes back what it does not
change, and into a tensor that is not contiguous some operators write by way of a copy.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from streamsan.torch.aliases import alias
from streamsan.torch.readback import is_masked_fill

_BY_DIMENSION: Final = frozenset({"index_add_", "index_copy_", "index_fill_", "index_select"})
_BY_LIST: Final = frozenset({"_index_put_impl_", "index", "index_put_"})
SELECTING: Final = _BY_DIMENSION | _BY_LIST | {"embedding"}
"""Operators that touch only chosen rows of their first argument."""

_BY_A_COPY: Final = frozenset({"_index_put_impl_", "index_add_", "index_copy_", "index_put_"})

_MASKS: Final = (torch.bool, torch.uint8)
_MOST_NUMBERS: Final = 1024
_MOST_RUNS: Final = 16


def touched(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the arguments, with the touched rows in place of the first one if they are known.

    Example:
        >>> touched("index", (torch.zeros(3), [None]))[0].shape
        torch.Size([3])
    """
    chosen = _chosen(name, args)
    if chosen is None:
        return args
    dimension, index = chosen
    whole = args[0]
    runs = _runs(index, whole.shape[dimension])
    if runs is None:
        return args
    return ([whole.narrow(dimension, first, count) for first, count in runs], *args[1:])


def _chosen(name: str, args: tuple[Any, ...]) -> tuple[int, torch.Tensor] | None:
    """The dimension and the numbers, if the call has them at the usual places."""
    if len(args) < 2 or not isinstance(args[0], torch.Tensor) or args[0].dim() == 0:
        return None
    if name in _BY_A_COPY and not args[0].is_contiguous():
        return None
    if name in _BY_DIMENSION:
        index = args[2] if len(args) > 2 else None
        dimension = args[1]
    else:
        index = args[1]
        dimension = 0
    if name in _BY_LIST:
        if name != "index" and isinstance(index, (list, tuple)) and is_masked_fill(index, args):
            return None
        index = index[0] if isinstance(index, (list, tuple)) and index else None
    if not isinstance(index, torch.Tensor) or index.layout is not torch.strided or type(dimension) is not int:
        return None
    if index.numel() > _MOST_NUMBERS or (index.dtype in _MASKS and index.dim() != 1):
        return None
    return dimension % args[0].dim(), index


def _runs(index: torch.Tensor, size: int) -> list[tuple[int, int]] | None:
    """Runs of neighbouring rows: first and count of each; `None` if there are too many."""
    host = alias(index) if index.is_cuda else index
    # A new tensor: what is read from this one is the layer's business, and no access of the program.
    host = host.nonzero() if host.dtype in _MASKS else host.clone()
    runs: list[tuple[int, int]] = []
    for row in sorted({int(number) % size for number in host.flatten().tolist()}) if size else []:
        if runs and row == sum(runs[-1]):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        elif len(runs) == _MOST_RUNS:
            return None
        else:
            runs.append((row, 1))
    return runs
