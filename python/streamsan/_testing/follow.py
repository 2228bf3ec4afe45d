"""Follows the trace of this process, and judges the part of it that belongs to a test."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from streamsan._marks import recorder
from streamsan._testing.judge import Judge, Verdict

_REGION: Final = 0
# How long the end of a part waits for events that other threads are about to write, in seconds.
_PATIENCE: Final = 0.2
_TRACE: Final = "STREAMSAN_TRACE"


class Follower:
    """The live check of this process.

    It reads along what the process writes, and costs what checking the events costs. Where it sees a
    finding, the part is cut out of the trace and checked again from that file, with verified fixes and as the
    project's settings say.

    Attributes:
        trace: The file that this process writes.
        operations: How many operations were recorded in tests.
        checked: How many tests had operations.
    """

    def __init__(self, judge: Judge, folder: Path, worker: str) -> None:
        """Begins to follow. `worker` is the name of this process in those of files."""
        core = recorder()
        assert core is not None, "this process is recorded, or there would be no follower"
        self.trace = Path(os.fspath(core.trace_path()))
        self.operations = 0
        self.checked = 0
        self._judge = judge
        self._folder = folder
        self._worker = worker
        self._live: Any = core.Live(str(self.trace))
        self._first = 1
        self._number = 0
        self._stem = f"{worker}-0-outside"
        self._operations_before = 0
        self._harmless: set[tuple[str, ...]] = set()
        self._known: set[str] = set()
        # Parts of which not all is reported, as first and last event.
        self._silent: list[tuple[int, int]] = []

    def begin(self, label: str) -> None:
        """A test begins."""
        core = recorder()
        if core is None:
            return
        self._number += 1
        self._stem = f"{self._worker}-{self._number}-{_file_name(label)}"
        # For processes that the test starts; this one has long opened its trace.
        os.environ[_TRACE] = str(self._folder / f"{self._stem}-process.sstrace")
        self._operations_before = core.operations_recorded()
        core.range_begin(_REGION, label)

    def end(self) -> None:
        """The test has ended."""
        core = recorder()
        if core is None:
            return
        core.range_end(_REGION)
        operations = core.operations_recorded() - self._operations_before
        self.operations += operations
        self.checked += operations > 0
        self._stem = f"{self._worker}-{self._number}-outside"
        os.environ[_TRACE] = str(self._folder / f"{self._stem}-process.sstrace")

    def processes(self) -> Path:
        """Returns the trace that a process started now would write."""
        return self._folder / f"{self._stem}-process.sstrace"

    def operations_recorded(self) -> int:
        """Returns how many operations were recorded at all."""
        core = recorder()
        return core.operations_recorded() if core is not None else 0

    def skip(self) -> None:
        """What was done since the last call is not reported."""
        first, last, _, _ = self._take()
        self._silent.append((first, last))

    def judge(self, ignore: Sequence[str], part: str = "") -> tuple[Verdict, Path] | None:
        """Judges what was done since the last call. Returns None if there is nothing to say."""
        if recorder() is None:
            return None
        first, last, found, complete = self._take()
        if ignore:
            self._silent.append((first, last))
        key = (*ignore, *sorted(found))
        if complete and (not found or key in self._harmless):
            return None
        core = recorder()
        path = self._folder / f"{self._stem}{part}.sstrace"
        core.write_excerpt(str(self.trace), str(path), first, last)
        verdict = self._judge.check(path, ignore, reports=self._judge.wants_reports)
        self._known.update(verdict.fingerprints)
        if not verdict.fails:
            self._harmless.add(key)
            for suffix in (".sstrace", ".html", ".sarif"):
                path.with_suffix(suffix).unlink(missing_ok=True)
        return (verdict, path) if verdict.lines else None

    def whole(self) -> tuple[Verdict, list[str]]:
        """Checks the whole trace again. Returns that, and lines of findings that no part has had."""
        verdict = self._judge.check(self.trace)
        found = zip(verdict.fingerprints, verdict.later, verdict.lines, strict=True)
        missed = [
            line
            for fingerprint, later, line in found
            if fingerprint not in self._known
            and not any(first <= later <= last for first, last in self._silent)
        ]
        return verdict, missed

    def _take(self) -> tuple[int, int, set[str], bool]:
        """Ends a part: its first and last event, what the check saw in it, and whether it came so far."""
        core = recorder()
        if core is None:
            return self._first, self._first, set(), True
        last: int = core.settle()
        first, self._first = self._first, last + 1
        found: set[str] = set()
        deadline = time.monotonic() + _PATIENCE
        while True:
            found.update(f"{rule} {line}" for _, rule, _, line in self._live.advance())
            complete = self._live.last() >= last
            if complete or time.monotonic() > deadline:
                break
            time.sleep(0.001)
        # What one test has found would not be new in the next one.
        self._live.forget_findings()
        return first, last, found, complete


def _file_name(label: str) -> str:
    """A test's name as a part of a file's name; the number before it tells apart what comes out the same."""
    return re.sub(r"[^\w.-]+", "_", label.rpartition("/")[2], flags=re.ASCII)[:100]
