"""What a check found, as plain values: frozen, comparable, picklable, with nothing native behind them."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from streamsan._errors import CaptureError, HazardError

# Gaps that stand for events which nobody has seen.
_LOST = ("lost-events", "damaged")

Level = Literal["error", "warning", "note"]
Mode = Literal["read", "write", "update", "unknown"]


@dataclass(frozen=True)
class Frame:
    """A line of code on a call stack.

    Example:
        >>> import streamsan
        >>> print(streamsan.check("bad.sstrace").findings[0].second.stack[0])
        bad.sim:4
    """

    file: str
    line: int
    function: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Place:
    """One operation of a finding.

    Attributes:
        op: Number of the operation in the trace.
        stream: Name of its stream, or `host`.
        access: How it touches the memory; None where no memory is involved.
        label: What it is, such as `aten::mul`.
        stack: The user's frames, innermost first.
        forward: For an operation of backward, the frames of its forward operation.
        captured: For a node of a CUDA graph, the frames that captured it; `stack` is that of the launch.

    Example:
        >>> import streamsan
        >>> first = streamsan.check("bad.sstrace").findings[0].first
        >>> first.stream, first.access
        ('default', 'write')
    """

    op: int
    stream: str
    access: Mode | None
    label: str
    stack: tuple[Frame, ...]
    forward: tuple[Frame, ...] = ()
    captured: tuple[Frame, ...] = ()


class Edge(NamedTuple):
    """Two operations, the second of which has to come after the first.

    Attributes:
        source: Number of the operation that has to come first.
        target: Number of the one that has to wait for it.

    Example:
        >>> import streamsan
        >>> finding = streamsan.check("bad.sstrace").findings[0]
        >>> finding.missing_edge == (finding.first.op, finding.second.op)
        True
    """

    source: int
    target: int


@dataclass(frozen=True)
class Reach:
    """How far the order that exists reaches.

    Attributes:
        stream: The stream of the first operation of the finding.
        op: Its last operation that the second operation is ordered after; 0 if there is none.
    """

    stream: str
    op: int


@dataclass(frozen=True)
class Memory:
    """The memory of a finding.

    Attributes:
        name: The variable that it was assigned to, or what `streamsan.name` said.
        bytes: Size of the block.
        offset: Where the access starts in the block.
        device: Index of the device; None for host memory.
        owner: The stream that it was allocated on, if it belongs to one.

    Example:
        >>> import streamsan
        >>> memory = streamsan.check("bad.sstrace").findings[0].memory
        >>> memory.name, memory.bytes
        ('x', 4194304)
    """

    name: str | None
    bytes: int
    offset: int
    device: int | None
    owner: str | None


@dataclass(frozen=True)
class Fix:
    """One change to the program that removes a finding.

    Attributes:
        file: Where to put it.
        line: Before which line. Of advice: which line it is about.
        insert: The code; None where a stream has no name there, or no line runs each time before, and then
            `Finding.notes` says it in words.
        verified: Whether the trace was checked again with all fixes in place, this finding was gone, and
            nothing new appeared.
        where: `before` the line. Of advice also `after` it, `replace`, or `remove`.
    """

    file: str | None
    line: int | None
    insert: str | None
    verified: bool
    where: str = "before"


@dataclass(frozen=True)
class Advice:
    """What a piece of advice counted. Nothing in it is a time.

    Attributes:
        executions: Executions of the line; `Finding.count` of them were so.
        operations: Operations that it concerns.
        bytes: Bytes that it concerns.
    """

    executions: int
    operations: int
    bytes: int


@dataclass(frozen=True)
class Gap:
    """Something that could not be seen. It says nothing bad about the program.

    Attributes:
        rule: `SS901` or `SS902`.
        reason: Why, as a fixed word.
        detail: What: a kernel, a call.
        count: How often.
    """

    rule: str
    reason: str
    detail: str
    count: int


@dataclass(frozen=True)
class Ignored:
    """A place where the program or its configuration says that hazards are none.

    Attributes:
        place: `train.py:41`, or the pattern of a configuration.
        rules: The rules that it names.
        reason: Why; empty for a configuration.
        findings: How many findings it left out.
        hazards: How often these occurred.
    """

    place: str
    rules: tuple[str, ...]
    reason: str
    findings: int
    hazards: int


@dataclass(frozen=True)
class Coverage:
    """What was seen.

    Example:
        >>> import streamsan
        >>> streamsan.check("bad.sstrace").coverage.operations
        2
    """

    operations: int = 0
    opaque: int = 0
    streams: int = 0
    devices: int = 0
    waits: int = 0
    host_waits: int = 0
    blocks: int = 0


@dataclass(frozen=True)
class Finding:
    """Hazards of one rule and one pair of places. As text it is one line.

    Attributes:
        id: `F1`, `F2`, … in this report.
        trace: The file that it was found in.
        rule: Code of the rule.
        name: Name of the rule.
        level: How serious it is.
        hazard: `RAW`, `WAR` or `WAW` for conflicts; else None.
        fingerprint: The same in each run as long as rule and places are.
        count: How often it occurred.
        occurrences: The numbers of the later operations, each once, if it occurred more than once; where
            they are many, the first one and from there on each second, fourth, … one.
        first: The earlier operation; None for rules about one place.
        second: The later operation, or the only one.
        missing_edge: The order that is missing.
        ordered_up_to: The order that is there.
        memory: The memory that the second operation touches.
        alloc: Where that was allocated, innermost frame first.
        free: Lifetime rules: where the last reference went.
        old_memory: Lifetime rules: what the first operation touched.
        old_alloc: Lifetime rules: where that was allocated.
        fix: What to insert.
        removed_by: The id of a finding whose fix alone also removes this one.
        removes: How many other findings the fix of this one alone also removes.
        notes: Further statements.
        advice: Rules SS7: what was counted; None for other findings.

    Example:
        >>> import streamsan
        >>> finding = streamsan.check("bad.sstrace").findings[0]
        >>> finding.rule, finding.name, finding.level, finding.hazard
        ('SS101', 'unordered-read-after-write', 'error', 'RAW')
    """

    id: str
    trace: str
    rule: str
    name: str
    level: Level
    hazard: str | None
    fingerprint: str
    count: int
    occurrences: tuple[int, ...]
    first: Place | None
    second: Place
    missing_edge: Edge | None
    ordered_up_to: Reach | None
    memory: Memory | None
    alloc: tuple[Frame, ...]
    free: Place | None
    old_memory: Memory | None
    old_alloc: tuple[Frame, ...]
    fix: Fix | None
    removed_by: str | None
    removes: int
    notes: tuple[str, ...]
    advice: Advice | None
    _line: str = field(repr=False)

    def __str__(self) -> str:
        return self._line


@dataclass(frozen=True)
class Report:
    """What checking traces found, and what was not seen. As text it is the full report.

    Attributes:
        findings: What is wrong, errors first. Iterating over the report gives the same.
        gaps: What could not be seen.
        coverage: What was seen.
        hidden: How many findings were left out because their rules were not selected, or were ignored.
        ignored: Ignores in the program that were met, and what each left out.
        traces: The files that were checked.

    Example:
        >>> import streamsan
        >>> report = streamsan.check("bad.sstrace")
        >>> report.ok, len(report), report.findings[0].rule
        (False, 1, 'SS101')
    """

    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    coverage: Coverage
    hidden: int
    ignored: tuple[Ignored, ...]
    traces: tuple[str, ...]
    _texts: dict[str, str] = field(repr=False)
    _request: dict[str, Any] = field(repr=False, default_factory=dict)
    _stamps: tuple[tuple[int, int], ...] = field(repr=False, compare=False, default=())

    @property
    def ok(self) -> bool:
        """Whether operations were seen, none of the trace is lost, and none of the findings is an error.

        Example:
            >>> import streamsan
            >>> streamsan.check("fixed.sstrace").ok, streamsan.check("empty.sstrace").ok
            (True, False)
        """
        return self.coverage.operations > 0 and not self._lost and not self.errors

    @property
    def _lost(self) -> bool:
        return any(gap.reason in _LOST for gap in self.gaps)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that are errors.

        Example:
            >>> import streamsan
            >>> [finding.rule for finding in streamsan.check("bad.sstrace").errors]
            ['SS101']
        """
        return tuple(finding for finding in self.findings if finding.level == "error")

    def summary(self) -> str:
        """Returns the last lines of the full report: counts, and what was not seen.

        Example:
            >>> import streamsan
            >>> print(streamsan.check("fixed.sstrace").summary().splitlines()[0])
            No hazards in what was seen: 2 operations, 2 streams, 1 wait between streams.
        """
        return self._texts["summary"]

    def render(self, format: str = "full") -> str:
        """Returns the report as text.

        Formats other than `full`, `concise` and `json` are made from the traces, which have to be there
        still.

        Args:
            format: What `streamsan check --output-format` takes.

        Raises:
            ValueError: if there is no such format.
            TraceError: if a trace has changed since it was checked.

        Example:
            >>> import streamsan
            >>> print(streamsan.check("bad.sstrace").render("concise").split(" unordered")[0])
            bad.sim:4: error[SS101]
        """
        if format in self._texts and format != "summary":
            return self._texts[format]
        from streamsan._check import render_again

        return render_again(self.traces, self._stamps, self._request, format)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the report to a file, in the format that its name ends in.

        Args:
            path: Such as `report.html`, `report.json` or `report.txt`. A file that is there is overwritten.

        Raises:
            ValueError: if the name tells no format.
            OSError: if the file cannot be written.

        Example:
            >>> import pathlib, streamsan
            >>> streamsan.check("bad.sstrace").write("report.txt")
            >>> "error[SS101]" in pathlib.Path("report.txt").read_text()
            True
        """
        from streamsan._check import format_of

        text = self.render(format_of(path))
        Path(path).write_text(text, encoding="utf-8")

    def to_json(self) -> str:
        """Returns the report as JSON. Its keys stay as they are.

        Example:
            >>> import json, streamsan
            >>> json.loads(streamsan.check("bad.sstrace").to_json())["findings"][0]["rule"]
            'SS101'
        """
        return self._texts["json"]

    def raise_if_errors(self) -> None:
        """Does nothing if all is well.

        Raises:
            HazardError: if there are findings that are errors.
            CaptureError: if the traces hold no operation, or a part of them is lost, so that not all was
                checked.

        Example:
            >>> import streamsan
            >>> streamsan.check("fixed.sstrace").raise_if_errors()
        """
        if self.errors:
            raise HazardError(self)
        names = ", ".join(self.traces)
        if self.coverage.operations == 0:
            raise CaptureError(f"no CUDA operation was recorded in {names}, so nothing was checked")
        if self._lost:
            raise CaptureError(f"a part of {names} is lost, and what was seen has no errors")

    def __len__(self) -> int:
        """Returns how many findings there are."""
        return len(self.findings)

    def __iter__(self) -> Iterator[Finding]:
        """Iterates over the findings."""
        return iter(self.findings)

    def __bool__(self) -> bool:
        """True, also without findings: ask `ok`."""
        return True

    def __hash__(self) -> int:
        return hash((self.findings, self.gaps, self.traces))

    def __str__(self) -> str:
        return self._texts["full"]

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: a table, and the full text below it."""
        rows = "".join(
            f"<tr><td>{finding.id}</td><td>{finding.level}[{finding.rule}]</td>"
            f"<td style='text-align:left'>{html.escape(str(finding))}</td><td>{finding.count}</td></tr>"
            for finding in self.findings
        )
        head = "<tr><th></th><th>rule</th><th>finding</th><th>count</th></tr>"
        table = f"<table>{head}{rows}</table>" if rows else ""
        text = html.escape(self._texts["full"])
        details = f"<details><summary>full report</summary><pre>{text}</pre></details>" if rows else ""
        return f"<div>{table}<pre>{html.escape(self.summary())}</pre>{details}</div>"


def from_texts(
    traces: tuple[str, ...],
    texts: dict[str, str],
    request: dict[str, Any],
    stamps: tuple[tuple[int, int], ...],
) -> Report:
    """Makes a report of what the native check wrote: `json` is what its values are read from."""
    document = json.loads(texts["json"])
    lines = texts["concise"].splitlines()
    findings = document["findings"]
    return Report(
        findings=tuple(_finding(value, line) for value, line in zip(findings, lines, strict=False)),
        gaps=tuple(Gap(gap["rule"], gap["reason"], gap["detail"], gap["count"]) for gap in document["gaps"]),
        coverage=_known(Coverage, document["coverage"]),
        hidden=document["hidden"],
        ignored=tuple(
            Ignored(one["place"], tuple(one["rules"]), one["reason"], one["findings"], one["hazards"])
            for one in document.get("ignored", ())
        ),
        traces=traces,
        _texts=texts,
        _request=request,
        _stamps=stamps,
    )


def _finding(value: dict[str, Any], line: str) -> Finding:
    edge, reach, fix = value.get("missing_edge"), value.get("ordered_up_to"), value.get("fix")
    return Finding(
        id=value["id"],
        trace=value["trace"],
        rule=value["rule"],
        name=value["name"],
        level=value["level"],
        hazard=value["hazard"],
        fingerprint=value["fingerprint"],
        count=value["count"],
        occurrences=tuple(value.get("occurrences", {}).get("ops", ())),
        first=_place(value["first"]) if value["first"] else None,
        second=_place(value["second"]),
        missing_edge=Edge(edge["from"], edge["to"]) if edge else None,
        ordered_up_to=Reach(reach["stream"], reach["op"]) if reach else None,
        memory=_memory(value.get("memory")),
        alloc=_stack(value.get("alloc")),
        free=_place(value["free"]) if value["free"] else None,
        old_memory=_memory(value.get("old_memory")),
        old_alloc=_stack(value.get("old_alloc")),
        fix=Fix(fix["file"], fix["line"], fix["insert"], fix["verified"], fix["where"]) if fix else None,
        removed_by=value["removed_by"],
        removes=value["removes"],
        notes=tuple(value["notes"]),
        advice=Advice(**value["advice"]) if value.get("advice") else None,
        _line=line,
    )


def _place(value: dict[str, Any]) -> Place:
    # Where the last reference went, a place has no stream.
    return Place(
        op=value["op"],
        stream=value.get("stream", "host"),
        access=value.get("access"),
        label=value.get("label", ""),
        stack=_stack(value),
        forward=_stack(value.get("forward")),
        captured=_stack(value.get("captured")),
    )


def _stack(value: dict[str, Any] | None) -> tuple[Frame, ...]:
    frames = value["stack"] if value else []
    return tuple(Frame(frame["file"], frame["line"], frame.get("function")) for frame in frames)


def _memory(value: dict[str, Any] | None) -> Memory | None:
    if value is None:
        return None
    return Memory(value["name"], value["bytes"], value["offset"], value["device"], value["owner"])


def _known(kind: type[Coverage], value: dict[str, Any]) -> Coverage:
    """Takes the keys that are known: a newer check may count more."""
    return kind(**{name: value[name] for name in kind.__dataclass_fields__ if name in value})
