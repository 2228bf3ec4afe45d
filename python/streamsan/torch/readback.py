"""Operators that make the host wait for their stream inside torch's CUDA code.

They need a number on the host, mostly the size of their result. Names are those of operators without their
namespace.
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
        "_unique",
        "_unique2",
        "bincount",
        "equal",
        "geqrf",
        "is_nonzero",
        "item",
        "linalg_eig",
        "linalg_lstsq",
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


def waits(name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Whether this call makes the host wait for its stream."""
    if name in ALWAYS:
        return not (name == "repeat_interleave" and kwargs.get("output_size") is not None)
    if name not in INDEXED:
        return False
    indices = args[1] if len(args) > 1 else kwargs.get("indices")
    if not isinstance(indices, (list, tuple)):
        return False
    if name != "index" and name != "_unsafe_index" and _is_masked_fill(indices, args):
        return False
    return any(
        isinstance(index, torch.Tensor) and (index.dtype in (torch.bool, torch.uint8) or not index.is_cuda)
        for index in indices
    )


def _is_masked_fill(indices: list[object] | tuple[object, ...], args: tuple[object, ...]) -> bool:
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
