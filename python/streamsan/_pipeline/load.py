"""Items, and the loads in which they travel: one item, or several small ones that share their copies."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TypeAlias

import torch

from streamsan._pipeline.failures import ItemError
from streamsan._pipeline.items import Layout
from streamsan._pipeline.slots import Stage

Events: TypeAlias = tuple[torch.cuda.Event, torch.cuda.Event, torch.cuda.Event]
"""When a load was uploaded, computed, downloaded."""


@dataclasses.dataclass(slots=True, eq=False)
class Item:
    """One item on its way.

    Attributes:
        index: Which one, from 0.
        shape: The item without its tensors.
        leaves: Its tensors.
        layout: Where they lie in a slot.
        direct: Whether they can be copied to the device from where they are.
        lazy: Whether some of them are still to be read.
        failed: Why it has no result.
        result: What the function returned, without its tensors.
        found: The tensors that the function returned.
        found_layout: Where these lie, one behind the other.
        in_place: Whether they are the item's own tensors in the slot, whole.
        in_slot: Whether any of them lies in the slot.
        given: Where the caller wants them; `None` for new tensors.
        targets: Where they are in the end.
    """

    index: int
    shape: object = None
    leaves: list[torch.Tensor] = dataclasses.field(default_factory=list)
    layout: Layout | None = None
    direct: bool = True
    lazy: bool = False
    failed: ItemError | None = None
    result: object = None
    found: Sequence[torch.Tensor] = ()
    found_layout: Layout | None = None
    in_place: bool = False
    in_slot: bool = False
    given: list[torch.Tensor] | None = None
    targets: Sequence[torch.Tensor] = ()

    @property
    def size(self) -> int:
        """Bytes in a slot."""
        return self.layout.size if self.layout is not None else 0

    def fail(self, stage: str, error: BaseException) -> None:
        """Notes why there is no result, and lets go of what was to become one."""
        if self.failed is None:
            self.failed = ItemError(self.index, stage, error)
        self.found, self.given = (), None


@dataclasses.dataclass(slots=True, eq=False)
class Load:
    """Items that share one slot, one upload and, if they can, one download.

    Attributes:
        number: Which load, from 0.
        items: All of its items in order, those too that failed on the way here.
        live: Those that are uploaded.
        key: The layouts of these.
        size: Their bytes in the slot.
        staged: The filling of the staging buffer; `None` if they are copied from where they are.
        stage: The staging buffer that they were copied to.
    """

    number: int
    items: list[Item] = dataclasses.field(default_factory=list)
    live: list[Item] = dataclasses.field(default_factory=list)
    key: tuple[Layout, ...] = ()
    size: int = 0
    staged: Future[None] | None = None
    stage: Stage | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Part:
    """Items of a load whose results are downloaded together: all of them, if the results are not large.

    Attributes:
        items: The items.
        events: Its events; `None` if nothing was submitted.
        shared: Whether the function may write to its results again, which the download still reads.
        arrived: Their way from the staging buffer to where they go; `None` if they go there at once.
    """

    items: list[Item] = dataclasses.field(default_factory=list)
    events: Events | None = None
    shared: bool = False
    arrived: Future[None] | None = None

    @property
    def live(self) -> list[Item]:
        """The items that have not failed."""
        return [item for item in self.items if item.failed is None]
