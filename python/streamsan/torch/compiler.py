"""The compiler's front, Dynamo, leaves the functions of this package alone.

On the virtual device nothing is compiled while a mode is on: kernels of the compiler are not run there, and
operators are. But inside the mode it is off, and so it is in threads that have none. To newer versions (2.15)
it is an error if a function with `fullgraph=True` is not compiled. There it never is.
"""

from __future__ import annotations

import importlib
from typing import Any

from streamsan import _core
from streamsan._watch import after_import


def keep_compiler_out() -> None:
    """Has Dynamo told once the program imports it, which `import torch` alone does not."""
    after_import("torch._dynamo", _adapt)


def _adapt() -> None:
    importlib.import_module("torch._dynamo.trace_rules").add("streamsan")
    if not _core.is_virtual():
        return
    frames: Any = importlib.import_module("torch._dynamo.eval_frame")
    if hasattr(frames, "set_fullgraph_compiled_frame_count"):
        frames.set_fullgraph_compiled_frame_count = _count_elsewhere


def _count_elsewhere(count: int) -> int:
    """Answers as if an outer function counted the compiled frames already: then nobody looks at the sum."""
    return 0
