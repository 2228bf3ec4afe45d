"""What the markers of a test say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pytest

from streamsan._testing.judge import unknown_rule

_STREAMSAN: Final = 'write it as @pytest.mark.streamsan(ignore=["SS102"])'
_NO_STREAMSAN: Final = 'write it as @pytest.mark.no_streamsan(reason="its races are what it tests")'


@dataclass(frozen=True)
class Wanted:
    """What is reported of a test.

    Attributes:
        ignore: Not these rules.
        silent: Nothing at all.
        mistake: What is wrong with a marker, if something is.
    """

    ignore: Sequence[str] = ()
    silent: bool = False
    mistake: str | None = None


def wanted(item: pytest.Item) -> Wanted:
    """Reads the markers of a test, its class and its module."""
    ignore: list[str] = []
    for marker in item.iter_markers("streamsan"):
        rules = marker.kwargs.get("ignore")
        if marker.args or set(marker.kwargs) != {"ignore"} or not isinstance(rules, (list, tuple)):
            return Wanted(mistake=f"the marker streamsan of this test is not understood: {_STREAMSAN}")
        for rule in rules:
            wrong = unknown_rule(rule) if isinstance(rule, str) else f"{rule!r} is no rule; {_STREAMSAN}"
            if wrong is not None:
                return Wanted(mistake=f"in the marker streamsan of this test: {wrong}")
        ignore += rules
    silent = False
    for marker in item.iter_markers("no_streamsan"):
        reason = marker.kwargs.get("reason")
        has_reason = isinstance(reason, str) and bool(reason.strip())
        if marker.args or set(marker.kwargs) != {"reason"} or not has_reason:
            return Wanted(mistake=f"the marker no_streamsan of this test needs a reason: {_NO_STREAMSAN}")
        silent = True
    return Wanted(ignore, silent)


class MarkerCheck:
    """Fails tests whose markers are wrong, before their fixtures run."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """A rule that does not exist must not be thought to be ignored."""
        mistake = wanted(item).mistake
        if mistake is not None:
            pytest.fail(mistake, pytrace=False)
