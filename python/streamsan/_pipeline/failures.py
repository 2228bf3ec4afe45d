"""What a pipeline raises."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from types import FrameType
from typing import TYPE_CHECKING

from streamsan._errors import StreamsanError

if TYPE_CHECKING:
    from streamsan._pipeline.results import Results


@dataclasses.dataclass(frozen=True)
class ItemError:
    """One item without a result.

    Attributes:
        index: Which item, from 0.
        stage: Where it failed: ``source``, ``upload``, ``function``, ``download`` or ``out``.
        error: What was raised there, with its traceback.
    """

    index: int
    stage: str
    error: BaseException

    def __str__(self) -> str:
        """``item 3: function: ValueError: ...``."""
        return f"item {self.index}: {self.stage}: {type(self.error).__name__}: {self.error}"


@dataclasses.dataclass(frozen=True)
class Refused:
    """Stands for an item that cannot be uploaded, and says why."""

    error: Exception


class PipelineError(StreamsanError):
    """Some items failed, or a pipeline could not be made. The other items have their results.

    Attributes:
        errors: What failed, in order of the items.
        results: The results, `None` where an item failed. Empty if the pipeline could not be made.
    """

    errors: list[ItemError]
    results: Results

    def __init__(self, message: str, errors: list[ItemError], results: Results) -> None:
        """Keeps what failed and what did not."""
        super().__init__(message)
        self.errors = errors
        self.results = results


def clear_own_frames(error: BaseException) -> None:
    """Forgets the local variables of this package's finished frames in a traceback: device memory, mostly."""
    home = os.path.dirname(__file__)
    at = error.__traceback__
    while at is not None:
        frame: FrameType | None = at.tb_frame
        # Those that called it are kept too, though the traceback begins where the exception was caught.
        while frame is not None and frame.f_code.co_filename.startswith(home):
            with contextlib.suppress(RuntimeError):
                frame.clear()
            frame = frame.f_back
        at = at.tb_next


def failed_items(errors: list[ItemError], results: Results) -> PipelineError:
    """Returns the exception for items that failed."""
    shown = "; ".join(str(error) for error in errors[:3])
    more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
    count = f"{len(errors)} of {len(results)} items failed"
    return PipelineError(f"{count}: {shown}{more} (the other results are in .results)", errors, results)
