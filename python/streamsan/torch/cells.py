"""Recurrent cells that torch computes in one kernel on a GPU and has no host kernel for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

_Tensors = tuple[Any, ...]


def _lstm_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    cell: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> _Tensors:
    gates = _with_bias(input_gates, input_bias) + _with_bias(hidden_gates, hidden_bias)
    enter, keep, new, show = gates.chunk(4, 1)
    enter, keep, new, show = enter.sigmoid(), keep.sigmoid(), new.tanh(), show.sigmoid()
    next_cell = keep * cell + enter * new
    return show * next_cell.tanh(), next_cell, torch.cat([enter, keep, new, show], 1)


def _lstm_cell_backward(
    grad_hidden: torch.Tensor | None,
    grad_cell: torch.Tensor | None,
    cell: torch.Tensor,
    next_cell: torch.Tensor,
    workspace: torch.Tensor,
    has_bias: bool,
) -> _Tensors:
    enter, keep, new, show = workspace.chunk(4, 1)
    shown = next_cell.tanh()
    grad_hidden = torch.zeros_like(cell) if grad_hidden is None else grad_hidden
    grad = grad_hidden * show * (1 - shown * shown)
    if grad_cell is not None:
        grad = grad + grad_cell
    gates = torch.cat(
        [
            grad * new * enter * (1 - enter),
            grad * cell * keep * (1 - keep),
            grad * enter * (1 - new * new),
            grad_hidden * shown * show * (1 - show),
        ],
        1,
    )
    return gates, grad * keep, gates.sum(0) if has_bias else None


def _gru_cell(
    input_gates: torch.Tensor,
    hidden_gates: torch.Tensor,
    hidden: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> _Tensors:
    input_reset, input_update, input_new = _with_bias(input_gates, input_bias).chunk(3, 1)
    hidden_reset, hidden_update, hidden_new = _with_bias(hidden_gates, hidden_bias).chunk(3, 1)
    reset = (input_reset + hidden_reset).sigmoid()
    update = (input_update + hidden_update).sigmoid()
    new = (input_new + reset * hidden_new).tanh()
    return new + update * (hidden - new), torch.cat([reset, update, new, hidden, hidden_new], 1)


def _gru_cell_backward(grad: torch.Tensor, workspace: torch.Tensor, has_bias: bool) -> _Tensors:
    reset, update, new, hidden, hidden_new = workspace.chunk(5, 1)
    grad_update = grad * (hidden - new) * update * (1 - update)
    grad_new = grad * (1 - update) * (1 - new * new)
    grad_reset = grad_new * hidden_new * reset * (1 - reset)
    inputs = torch.cat([grad_reset, grad_update, grad_new], 1)
    hiddens = torch.cat([grad_reset, grad_update, grad_new * reset], 1)
    biases = (inputs.sum(0), hiddens.sum(0)) if has_bias else (None, None)
    return inputs, hiddens, grad * update, *biases


def _with_bias(gates: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return gates if bias is None else gates + bias


CELLS: Final[dict[str, Callable[..., _Tensors]]] = {
    "_thnn_fused_lstm_cell": _lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "_thnn_fused_gru_cell": _gru_cell,
    "_thnn_fused_gru_cell_backward": _gru_cell_backward,
}
