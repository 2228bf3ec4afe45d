"""The dispatch mode of the virtual device: operators are computed on the host, and recorded."""

from __future__ import annotations

from typing import Any

from torch._ops import OpOverload

from streamsan.torch import transfers
from streamsan.torch.observe import ObserveMode
from streamsan.torch.plans import Operator
from streamsan.torch.virtual import compute


class StreamMode(ObserveMode):
    """The mode for a GPU, with the arithmetic that no GPU does."""

    def __new__(cls) -> StreamMode:
        """Belongs to the thread that makes it."""
        return super().__new__(cls, compute)

    def copy_in_parts(
        self, operator: Operator, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs such a copy in steps that are operators: the kernels between would compute nothing."""
        with self:
            return transfers.copy_in_steps(operator, args, kwargs)
