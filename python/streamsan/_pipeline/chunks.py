"""Items larger than a slot: cut into runs of rows, computed one by one, and joined again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch

from streamsan._pipeline.failures import ItemError, Refused
from streamsan._pipeline.items import ALIGNMENT, Layouts, Signature, flatten, rebuild, signature
from streamsan._pipeline.results import Results
from streamsan._pipeline.sinks import PlainSink, spoken


@dataclasses.dataclass
class _Piece:
    """A run of rows of an item; the whole item if it fits."""

    item: int
    begin: int
    end: int
    rows: int
    cut: bool

    @property
    def is_last(self) -> bool:
        return self.end == self.rows


class Chunks:
    """Cuts items on their way in and joins results on their way out, where these go to a `PlainSink`."""

    def __init__(self, room: int, sink: PlainSink) -> None:
        """Takes the bytes of a slot, and where the whole results go."""
        self._room, self._sink = room, sink
        self._layouts = Layouts()
        self._pieces: dict[int, _Piece] = {}
        self._whole: dict[int, list[torch.Tensor]] = {}
        self._failed: ItemError | None = None

    @property
    def results(self) -> Results:
        """The results of whole items."""
        return self._sink.results

    @property
    def errors(self) -> list[ItemError]:
        """What failed."""
        return self._sink.errors

    def cut(self, items: Iterator[Any]) -> Iterator[Any]:
        """Gives the pieces of all items."""
        number = 0
        for index, source in enumerate(items):
            leaves: list[torch.Tensor] = []
            shape = flatten(source, leaves)
            try:
                runs, rows = self._runs(leaves)
                cut = len(runs) > 1
                parts = [source]
                if cut:
                    parts = [rebuild(shape, [leaf[begin:end] for leaf in leaves]) for begin, end in runs]
            # Whatever an object of the program's own raises is the failure of this item.
            except Exception as error:
                self._pieces[number] = _Piece(index, 0, 0, 0, cut=False)
                number += 1
                yield Refused(error)
                continue
            for (begin, end), part in zip(runs, parts, strict=True):
                self._pieces[number] = _Piece(index, begin, end, rows, cut)
                number += 1
                yield part

    def given(self, index: int, found: Signature) -> list[torch.Tensor] | None:
        """Returns the rows of the item's result that a piece's result goes to.

        Raises:
            ValueError: if the result has not one row for each row of the piece, or does not fit.
        """
        piece = self._pieces[index]
        if not piece.cut:
            return self._sink.given(piece.item, found)
        count = piece.end - piece.begin
        if any(len(shape) == 0 or shape[0] != count for shape, _ in found):
            raise ValueError(
                f"the function got {count} of the item's {piece.rows} rows and returned {spoken(found)}: "
                "with chunk=True it must give one row for each row it gets"
            )
        wanted = tuple((torch.Size((piece.rows, *shape[1:])), dtype) for shape, dtype in found)
        whole = self._whole.get(piece.item)
        if whole is None:
            whole = self._sink.given(piece.item, wanted)
            if whole is None:
                whole = [torch.empty(shape, dtype=dtype) for shape, dtype in wanted]
            self._whole[piece.item] = whole
        elif signature(whole) != wanted:
            raise ValueError(
                f"the function returned {spoken(found)} for the rows from {piece.begin} on, which does not "
                f"go with what it returned for the rows before: {spoken(signature(whole))} in all"
            )
        return [leaf[piece.begin : piece.end] for leaf in whole]

    def take(self, index: int, value: Any, failed: ItemError | None) -> None:
        """Takes the result of the next piece; the last one of an item gives the item's."""
        piece = self._pieces.pop(index, None)
        if piece is None:
            # The source failed: there is no piece.
            piece = _Piece(len(self.results), 0, 0, 0, cut=False)
        if failed is not None and self._failed is None:
            self._failed = ItemError(piece.item, failed.stage, failed.error)
        if not piece.is_last:
            return
        whole = self._whole.pop(piece.item, None)
        if piece.cut and self._failed is None:
            value = rebuild(flatten(value, []), whole or [])
        self._sink.take(piece.item, value, self._failed)
        self._failed = None

    def _runs(self, leaves: list[torch.Tensor]) -> tuple[list[tuple[int, int]], int]:
        """Begins and ends of the runs of rows, and how many rows there are.

        Raises:
            ValueError: if the item is too large and cannot be cut.
        """
        if self._layouts.of(leaves).size <= self._room:
            return [(0, 0)], 0
        lengths = {leaf.shape[0] if len(leaf.shape) else 0 for leaf in leaves}
        if len(lengths) > 1 or lengths == {0}:
            raise ValueError(
                "chunk=True cuts an item along its first dimension, which all its tensors must have in "
                f"common: this one has {spoken(signature(leaves))}"
            )
        rows = lengths.pop()
        width = sum(leaf.nbytes // rows for leaf in leaves)
        most = (self._room - (ALIGNMENT - 1) * len(leaves)) // width
        if most < 1:
            raise ValueError(
                f"one row of the item has {width} bytes, a slot {self._room}: raise memory= or item_bytes=, "
                "or lower slots="
            )
        # Runs as long as each other: a short one at the end would be one more turn for little.
        length = -(-rows // -(-rows // most))
        return [(begin, min(begin + length, rows)) for begin in range(0, rows, length)], rows
