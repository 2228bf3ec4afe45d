"""Operators that make the host wait for their stream inside torch's CUDA code.

They need a number on the host, mostly the size of their result. Names are those of operators without their
namespace. `torch.cuda.set_sync_debug_mode("error")` shows which operators of a release do so.
"""

from __future__ import annotations

from typing import Final

import torch

# Wait at each call.
ALWAYS: Final = frozenset(
    {
        "_coalesce",
        "_ctc_loss",
        "_linalg_check_errors",
        "_linalg_eigh",
        "_linalg_eigvals",
        "_linalg_svd",
        "_to_sparse",
        "_unique",
        "_unique2",
        "allclose",
        "bincount",
        "equal",
        "geqrf",
        "is_nonzero",
        "item",
        "linalg_eig",
        "linalg_lstsq",
        "linalg_matrix_exp",
        "linalg_matrix_rank",
        "masked_select",
        "nonzero",
        "nonzero_numpy",
        "repeat_interleave",
        "segment_reduce",
        "to_sparse",
        "unique_consecutive",
        "unique_dim",
        "unique_dim_consecutive",
    }
)

# Wait if an index is a mask (its positions are counted first), or lies in host memory (it is uploaded).
INDEXED: Final = frozenset(
    {
        "_index_put_impl_",
        "_unsafe_index",
        "index",
        "index_put",
        "index_put_",
    }
)

# Wait if these arguments are tensors on a device: their values are read back.
VALUES: Final = {
    "index_fill": ("value",),
    "index_fill_": ("value",),
    "linspace": ("start", "end"),
    "logspace": ("start", "end"),
    "masked_fill": ("value",),
    "masked_fill_": ("value",),
    "normal": ("std",),
}
_POSITIONS: Final = {
    "index_fill": 3,
    "index_fill_": 3,
    "linspace": 0,
    "logspace": 0,
    "masked_fill": 2,
    "masked_fill_": 2,
    "normal": 1,
}
"""Where the first of them stands."""


def may_wait(name: str, overload: str) -> bool:
    """Whether some calls of this operator make the host wait for their stream.

    Example:
        >>> may_wait("masked_fill_", "Tensor"), may_wait("masked_fill_", "Scalar")
        (True, False)
    """
    if name in VALUES or name == "isin":
        return "Tensor" in overload
    return name in ALWAYS or name in INDEXED or name == "histc"


def waits(name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Whether this call makes the host wait for its stream."""
    if name in ALWAYS:
        return not (name == "repeat_interleave" and kwargs.get("output_size") is not None)
    if name in VALUES:
        first = _POSITIONS[name]
        given = [*args[first : first + len(VALUES[name])], *(kwargs.get(value) for value in VALUES[name])]
        return any(isinstance(value, torch.Tensor) and value.is_cuda for value in given)
    if name == "histc":
        return _has_no_range(args, kwargs)
    if name == "isin":
        return _is_sorted(args, kwargs)
    if name not in INDEXED:
        return False
    indices = args[1] if len(args) > 1 else kwargs.get("indices")
    if not isinstance(indices, (list, tuple)):
        return False
    if name != "index" and name != "_unsafe_index" and is_masked_fill(indices, args):
        return False
    return any(
        isinstance(index, torch.Tensor) and (index.dtype in (torch.bool, torch.uint8) or not index.is_cuda)
        for index in indices
    )


def _has_no_range(args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Whether a histogram has to find the least and the greatest value first."""
    least = args[2] if len(args) > 2 else kwargs.get("min", 0)
    greatest = args[3] if len(args) > 3 else kwargs.get("max", 0)
    return least == greatest and isinstance(args[0], torch.Tensor) and args[0].numel() > 0


def _is_sorted(args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Whether so much is looked for that torch takes out what occurs twice, and sorts the rest."""
    elements = args[0] if args else kwargs.get("elements")
    wanted = args[1] if len(args) > 1 else kwargs.get("test_elements")
    if not (isinstance(elements, torch.Tensor) and isinstance(wanted, torch.Tensor)):
        return False
    many = 0 < elements.numel() and wanted.numel() >= 10.0 * elements.numel() ** 0.145
    return many and not kwargs.get("assume_unique", False)


def is_masked_fill(indices: list[object] | tuple[object, ...], args: tuple[object, ...]) -> bool:
    """Whether an assignment through a mask is a masked fill, which needs no count."""
    values = args[2] if len(args) > 2 else None
    accumulate = bool(args[3]) if len(args) > 3 else False
    masks = [index for index in indices if isinstance(index, torch.Tensor)]
    return (
        not accumulate
        and isinstance(values, torch.Tensor)
        and values.numel() == 1
        and not values.is_cuda
        and len(masks) == 1
        and masks[0].is_cuda
        and masks[0].dtype in (torch.bool, torch.uint8)
    )
