"""The compiler's front, Dynamo, leaves the functions of this package alone.

While a mode is on nothing is compiled, but inside the mode it is off, and so it is in threads that have none.
"""

from __future__ import annotations

import importlib

from streamsan._watch import after_import


def keep_compiler_out() -> None:
    """Has Dynamo told once the program imports it, which `import torch` alone does not."""
    after_import("torch._dynamo", _skip_package)


def _skip_package() -> None:
    importlib.import_module("torch._dynamo.trace_rules").add("streamsan")
