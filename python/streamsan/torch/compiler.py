"""The compiler's front, Dynamo, leaves the functions of this package alone.

On the virtual device nothing is compiled while a mode is on: kernels of the compiler are not run there, and
operators are. But inside the mode it is off, and so it is in threads that have none. To newer versions (2.15)
it is an error if a function with `fullgraph=True` is not compiled. There it never is.
"""

from __future__ import annotations

import getpass
import importlib
import os
import re
import tempfile
from typing import Any

from streamsan import _core
from streamsan._watch import after_import
from streamsan.torch.printing import ALL_OFF


def keep_compiler_out() -> None:
    """Has Dynamo told once the program imports it, which `import torch` alone does not."""
    after_import("torch._dynamo", _adapt)


def _adapt() -> None:
    importlib.import_module("torch._dynamo.trace_rules").add("streamsan")
    if not _core.is_virtual():
        let_it_compile()
        return
    frames: Any = importlib.import_module("torch._dynamo.eval_frame")
    if hasattr(frames, "set_fullgraph_compiled_frame_count"):
        frames.set_fullgraph_compiled_frame_count = _count_elsewhere


def let_it_compile() -> None:
    """Has the compiler turn all modes off while it works, ours too, as torch means it to."""
    frames: Any = importlib.import_module("torch._dynamo.convert_frame")
    # Elsewhere ours stays on. The compiler may have been imported before or after that was arranged.
    frames._disable_current_modes = ALL_OFF


def generated_code() -> str:
    """Returns the folder of the code that Inductor generates, which is no code of the program's."""
    folder = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if folder:
        return folder
    try:
        user = re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
    except (KeyError, OSError):
        # A container's user without a name: torch asks for the variable then.
        user = ""
    return os.path.join(tempfile.gettempdir(), f"torchinductor_{user}")


def _count_elsewhere(count: int) -> int:
    """Answers as if an outer function counted the compiled frames already: then nobody looks at the sum."""
    return 0
