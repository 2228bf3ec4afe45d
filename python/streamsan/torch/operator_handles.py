"""Python's object for each operator of torch is made before several threads can ask for the same one.

Below a dispatch mode torch looks up the object of an operator at its first call and keeps it. The look-up
runs Python and may let another thread go on in the middle. If that one comes to the same operator, torch
ends one of the two with an internal error (`expected != self_interpreter`, `c10/core/PyHandleCache.h`): it
takes the look-up for one that cannot be interrupted. Once `torch.ops` has the object, that is true.

Not covered: operators that are registered after the last thread was started, and threads of C++ that call
operators beside the main thread without a backward.
"""

from __future__ import annotations

import threading
import time

import torch

_BETWEEN_LOOKS = 0.1

_lock = threading.Lock()
_known: set[str] = set()
_looked = float("-inf")


def resolve_operators() -> None:
    """Has `torch.ops` make the objects of all registered operators; some 70 ms the first time.

    Later calls look for new ones (2 ms) now and then only: a program may start a thread for each request.
    """
    global _looked
    with _lock:
        if time.monotonic() < _looked + _BETWEEN_LOOKS:
            return
        names = torch._C._dispatch_get_all_op_names()
        if len(names) != len(_known):
            _resolve(set(names) - _known)
            _known.update(names)
        _looked = time.monotonic()


def _resolve(names: set[str]) -> None:
    for qualified in names:
        namespace, _, rest = qualified.partition("::")
        name, _, overload = rest.partition(".")
        try:
            getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
        except Exception:
            # Has no schema, so no object: torch cannot look it up either. The thread is to start anyway.
            continue
