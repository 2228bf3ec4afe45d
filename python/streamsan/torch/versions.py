"""What the layer needs of torch beyond its documented interface, looked for before anything is changed.

A version of torch that lacks a part ends the import with an error that names it, not with a wrong run.
What was tested with which version is data: `streamsan/versions.json`, which `streamsan doctor` prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from streamsan._errors import CaptureError

# Names below `torch`. Parts that only some versions have are asked for where they are used.
NEEDED: Final = (
    "_C.DispatchKey.CUDA",
    "_C.PyTorchFileWriter.write_record",
    "_C.StorageBase.data_ptr",
    "_C.TensorBase.untyped_storage",
    "_C._AutoDispatchBelowAutograd",
    "_C._DisableAutocast",
    "_C._DisableTorchDispatch",
    "_C._TorchDispatchModeKey.FAKE",
    "_C._activate_gpu_trace",
    "_C._construct_storage_from_data_pointer",
    "_C._cuda_getCurrentRawStream",
    "_C._cuda_sleep",
    "_C._current_graph_task_id",
    "_C._disabled_torch_dispatch_impl",
    "_C._dispatch_get_all_op_names",
    "_C._dispatch_has_kernel_for_dispatch_key",
    "_C._get_cudnn_enabled",
    "_C._get_dispatch_mode",
    "_C._jit_override_can_fuse_on_gpu",
    "_C._set_cudnn_enabled",
    "_conj",
    "_neg_view",
    "_ops.OpOverload._can_decompose",
    "_ops.OpOverload.decompose",
    "_subclasses.FakeTensor",
    "accelerator.synchronize",
    "autograd.graph._engine_run_backward",
    "backends.ContextProp",
    "backends.cudnn",
    "backends.mha.set_fastpath_enabled",
    "cuda.CUDAGraph",
    "cuda._sleep",
    "cuda.Event.wait",
    "cuda.Stream",
    "cuda.default_generators",
    "utils._python_dispatch.TorchDispatchMode",
    "utils._python_dispatch._disable_current_modes",
    "utils._python_dispatch._get_current_dispatch_mode_stack",
    "utils.dlpack.to_dlpack",
)


def require(torch: Any, needed: Iterable[str] = NEEDED) -> None:
    """Looks for all that is needed.

    Args:
        torch: the package, imported.
        needed: names below it.

    Raises:
        CaptureError: if something is not there, or this is a build without CUDA.

    Example:
        >>> from types import SimpleNamespace
        >>> require(SimpleNamespace(__version__="9.9", version=SimpleNamespace(cuda="13.0")), ["_C.gone"])
        Traceback (most recent call last):
        streamsan._errors.CaptureError: torch 9.9 has no torch._C.gone, which streamsan needs; ...
    """
    if torch.version.cuda is None:
        raise CaptureError(
            f"torch {torch.__version__} is built without CUDA, so nothing of it can be watched; "
            "install the CUDA build (the default of PyPI on Linux)"
        )
    missing = [name for name in needed if not _is_there(torch, name)]
    if missing:
        names = ", ".join(f"torch.{name}" for name in missing)
        raise CaptureError(
            f"torch {torch.__version__} has no {names}, which streamsan needs; "
            f"this streamsan was tested with {', '.join(tested())}"
        )


def tested() -> list[str]:
    """Returns the versions of torch that this streamsan was tested with, oldest first.

    Example:
        >>> "torch 2.11.0" in tested()
        True
    """
    data = json.loads(Path(__file__).parent.with_name("versions.json").read_text(encoding="utf-8"))
    return list(dict.fromkeys(f"torch {entry['torch']}" for entry in data["tested"]))


def _is_there(torch: object, name: str) -> bool:
    found = torch
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            return False
    return True
