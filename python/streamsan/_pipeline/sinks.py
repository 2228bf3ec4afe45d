"""Where results go: a list of new tensors, the caller's tensors, or a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from streamsan._pipeline.failures import ItemError
from streamsan._pipeline.items import Signature, flatten, signature
from streamsan._pipeline.results import Results


class Sink(Protocol):
    """Takes the results of a pipeline, in order."""

    @property
    def results(self) -> Results:
        """What is returned."""

    @property
    def errors(self) -> list[ItemError]:
        """What failed."""

    def given(self, index: int, found: Signature) -> list[torch.Tensor] | None:
        """Returns the tensors that an item's result goes to; `None` for new ones.

        Raises:
            ValueError: if the result does not fit.
        """

    def take(self, index: int, value: Any, failed: ItemError | None) -> None:
        """Takes the result of the next item."""


class PlainSink:
    """One result for each item."""

    def __init__(self, out: Callable[[int, Any], None] | Sequence[Any] | None) -> None:
        """Takes the argument of the pipeline."""
        self._results = Results()
        self._errors: list[ItemError] = []
        self._function = out if callable(out) else None
        self._places = None if callable(out) else out

    @property
    def results(self) -> Results:
        """One for each item, in order."""
        return self._results

    @property
    def errors(self) -> list[ItemError]:
        """What failed."""
        return self._errors

    def given(self, index: int, found: Signature) -> list[torch.Tensor] | None:
        """Returns the caller's tensors for an item's result; `None` if there are none."""
        if self._places is None:
            return None
        place = self._places[index]
        if type(place) is torch.Tensor and len(found) == 1:
            # The usual case, without making what is compared.
            shape, dtype = found[0]
            if place.dtype is dtype and place.shape == shape:
                return [place]
        given: list[torch.Tensor] = []
        flatten(place, given)
        if signature(given) != found:
            room = spoken(signature(given))
            raise ValueError(f"the function returned {spoken(found)}, `out` has room for {room}")
        return given

    def take(self, index: int, value: Any, failed: ItemError | None) -> None:
        """Appends the result, or gives it to the caller's function."""
        if failed is not None:
            self.errors.append(failed)
            value = None
        elif self._function is not None:
            try:
                self._function(index, value)
            except Exception as error:
                self.errors.append(ItemError(index, "out", error))
            value = None
        self.results.append(value)


def spoken(of: Signature) -> str:
    """Shapes and types for people."""
    return ", ".join(f"{dtype} {list(shape)}" for shape, dtype in of) or "no tensor"
