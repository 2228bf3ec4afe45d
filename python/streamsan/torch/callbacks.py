"""torch's own calls on allocations, events and synchronizations (`gpu_trace`)."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from streamsan import _core
from streamsan._errors import CaptureError

_HEADER = Path("include/c10/core/impl/PyInterpreter.h")
_FUNCTION = re.compile(r"\bvirtual\s+[^;(]*?(~?\w+)\s*\(")


def register_callbacks() -> None:
    """Has the native module called from now to the end of the process.

    Raises:
        CaptureError: if this torch is built in a way that is not known.
    """
    folder = Path(torch.__file__).resolve().parent
    torch._C._activate_gpu_trace()
    _core.watch_gpu_trace(str(folder / "lib" / "libc10.so"), virtual_functions(folder / _HEADER))


def virtual_functions(header: Path) -> list[str]:
    """Returns the entries of the table of virtual functions that torch's header declares, in order."""
    try:
        text = header.read_text(encoding="utf-8")
    except OSError as error:
        raise CaptureError(
            f"{header}: cannot be read ({error.strerror}); "
            "streamsan needs the headers that torch's wheels bring"
        ) from error
    text = re.sub(r"//[^\n]*", "", text)
    _, found, body = text.partition("struct C10_API PyInterpreterVTable")
    body = body.partition("\n};")[0]
    entries: list[str] = []
    for name in _FUNCTION.findall(body):
        # A destructor has two entries.
        entries.extend([name, name] if name.startswith("~") else [name])
    if not found or not entries:
        raise CaptureError(
            f"{header}: the declaration of PyInterpreterVTable is not there; this torch is not known"
        )
    return entries
