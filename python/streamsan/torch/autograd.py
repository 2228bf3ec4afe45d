"""Backward: which call of the engine its operations belong to."""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.autograd.graph

from streamsan.torch.operator_handles import resolve_operators
from streamsan.torch.threads import current_mode


def watch_backward() -> None:
    """Wraps the one function through which `Tensor.backward` and `torch.autograd.grad` call the engine."""
    graph: Any = torch.autograd.graph
    run = graph._engine_run_backward
    resolved = False

    @functools.wraps(run)
    def run_watched(*args: Any, **kwargs: Any) -> Any:
        nonlocal resolved
        mode = current_mode()
        if mode is None:
            return run(*args, **kwargs)
        if not resolved:
            # The engine works on the calling thread and on one for each device at the same time.
            resolve_operators()
            resolved = True
        mode.recorder.enter_backward()
        try:
            return run(*args, **kwargs)
        finally:
            mode.recorder.leave_backward()

    graph._engine_run_backward = run_watched
    package: Any = torch.autograd
    package._engine_run_backward = run_watched
