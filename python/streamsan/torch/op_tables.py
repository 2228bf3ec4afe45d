"""What operators' schemas do not say. Names are those of operators without their namespace."""

from __future__ import annotations

from typing import Final

# Results that alias an argument without a word of it in the schema, and questions about tensors.
VIEWS: Final = frozenset(
    {
        "_fused_sdp_choice",
        "_has_compatible_shallow_copy_type",
        "_has_same_storage_numel",
        "_is_zerotensor",
        "_reshape_alias",
        "_unsafe_view",
        "_version",
        "as_strided_",
        "detach_",
        "is_pinned",
        "is_same_size",
        "is_set_to",
        "lift",
        "lift_fresh",
        "record_stream",
        "rename_",
        "set_",
        "size",
        "squeeze_",
        "storage_offset",
        "stride",
        "swapaxes_",
        "swapdims_",
        "sym_is_contiguous",
        "sym_numel",
        "sym_size",
        "sym_storage_offset",
        "sym_stride",
        "t_",
        "transpose_",
        "unsqueeze_",
    }
)

# Allocate, but touch no bytes of a device; or make runtime calls that record themselves.
REAL: Final = frozenset(
    {
        "_local_scalar_dense",
        "_pin_memory",
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_quantized",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "pin_memory",
        "resize_",
        "resize_as_",
    }
)

# Change the shape, and give a tensor other memory if it has too little.
RESIZES: Final = frozenset({"resize_", "resize_as_"})

# Copies, which may cross devices.
COPIES: Final = frozenset({"_to_copy", "copy_"})

# In-place operators that do not look at what they overwrite.
OVERWRITES: Final = frozenset(
    {
        "_foreach_copy_",
        "_foreach_zero_",
        "bernoulli_",
        "cauchy_",
        "copy_",
        "exponential_",
        "fill_",
        "geometric_",
        "log_normal_",
        "normal_",
        "random_",
        "uniform_",
        "zero_",
    }
)

# Arguments of which only shape, type and device matter. "*" stands for all operators.
METADATA_ARGUMENTS: Final = {
    "embedding_dense_backward": frozenset[str](),
    "native_layer_norm_backward": frozenset({"bias"}),
    "expand_as": frozenset({"other"}),
    "view_as": frozenset({"other"}),
    "sum_to_size": frozenset[str](),
}

# Running statistics that are updated in training although the schema is functional.
STATISTICS: Final = {
    "_batch_norm_impl_index": frozenset({"running_mean", "running_var"}),
    "batch_norm": frozenset({"running_mean", "running_var"}),
    "cudnn_batch_norm": frozenset({"running_mean", "running_var"}),
    "miopen_batch_norm": frozenset({"running_mean", "running_var"}),
    "native_batch_norm": frozenset({"running_mean", "running_var"}),
}

# Results that lie in host memory although arguments lie on a device.
HOST_RESULTS: Final = {"_pack_padded_sequence": frozenset({1})}

# Operators whose kernels on the host give some results another shape than torch's rules for shapes say.
HOST_SHAPES: Final = frozenset(
    {
        "_batch_norm_no_update",
        "_embedding_bag",
        "_embedding_bag_forward_only",
        "_native_batch_norm_legit",
        "_native_batch_norm_legit_no_training",
        "cudnn_batch_norm",
        "native_batch_norm",
    }
)
