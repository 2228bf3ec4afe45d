"""Further runs of `streamsan run --confirm`: one operation is made late, what the other one sees is noted.

A plan says which findings are looked at, by the code lines of their two operations, and what this run does:
put the first operation of one finding late, or wait for all devices before the second operation of each. What
is noted are hashes of bytes that the operations wrote; `streamsan run` compares them between runs. The
program's own memory is left alone: torch's allocator is not asked for anything, no tensor is kept alive, and
nothing waits before the end but where the plan says so.

Of a graph, what is looked at is what its launch leaves in memory. Its nodes are ordered and made late when
they are captured, by an edge or a node more.

It can miss: operations that come from no Python line (but backward is found by its operator's name), bytes
after the first 4 MiB of a tensor, executions after the first 64.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from streamsan.torch.confirm_graphs import Graph, Graphs
from streamsan.torch.snapshots import Bytes, Snapshots, bytes_of
from streamsan.torch.wrappers import Handling, handling

# Set by `streamsan run --confirm`: the file with the plan.
PLAN: Final = "STREAMSAN_CONFIRM"

_EXECUTIONS: Final = 64
_FIRST, _SECOND = 0, 1
_CYCLES_PER_MILLISECOND: Final = 2_000_000


class _Part(NamedTuple):
    """An operation of a finding."""

    finding: int
    role: int


@dataclass(slots=True)
class _Seen:
    """What a finding's operations did so far."""

    executions: list[int]
    stream: int = 0
    device: int = -1
    written: Sequence[Bytes] = ()


class Rerun:
    """What this run does, and what it has seen; one for the process."""

    def __init__(self, plan: dict[str, Any]) -> None:
        """Reads the plan."""
        self._late: int | None = plan["late"]
        self._milliseconds: int = plan["milliseconds"]
        self._ordered: bool = plan["ordered"]
        self._places: dict[tuple[str, str, int], list[_Part]] = {}
        self._backward: dict[str, list[_Part]] = {}
        self._launches: dict[tuple[str, int], list[_Part]] = {}
        for number, finding in enumerate(plan["findings"]):
            # To look at another one's bytes would do copies that are to be late.
            if self._late not in (None, number):
                continue
            for role, name in ((_FIRST, "first"), (_SECOND, "second")):
                self._add(finding[name], _Part(number, role))
        self._lifetime = [bool(finding["lifetime"]) for finding in plan["findings"]]
        self._labels = {label for label, _, _ in self._places} | set(self._backward)
        self._seen = [_Seen([0, 0]) for _ in plan["findings"]]
        self._lock = threading.Lock()
        self.snapshots = Snapshots()
        self.graphs: Final = Graphs(self._before_capture, self._launch)

    def _add(self, place: dict[str, Any], part: _Part) -> None:
        label = place["label"]
        if place["launch"]:
            self._launches.setdefault((place["file"], place["line"]), []).append(part)
        elif place["backward"]:
            self._backward.setdefault(label, []).append(part)
        else:
            self._places.setdefault((label, place["file"], place["line"]), []).append(part)

    def parts(self, func: Any) -> list[_Part]:
        """Which operations of findings a call is."""
        if not isinstance(func, OpOverload) or func._schema.name not in self._labels:
            return []
        label = func._schema.name
        frame: FrameType | None = sys._getframe(1)
        in_program = False
        while frame is not None:
            file = _file(frame.f_code)
            found = self._places.get((label, file, frame.f_lineno))
            if found:
                return found
            in_program = in_program or not file.startswith(_LIBRARIES)
            frame = frame.f_back
        # A thread of the autograd engine runs no Python of the program.
        return [] if in_program else self._backward.get(label, [])

    def run(self, parts: list[_Part], call: Callable[[], Any], arguments: tuple[Any, ...]) -> Any:
        """Makes the call, with what the plan says before it, and notes what it wrote."""
        return self._watched(
            parts, call, _device(arguments), lambda out: list(bytes_of(tree_leaves(out))), captured=()
        )

    def capture(self, graph: Graph, parts: list[_Part], call: Callable[[], Any]) -> Any:
        """Makes the call, whose work becomes nodes of a graph: what the plan says becomes edges or a node."""
        for part in parts:
            if self._ordered and part.role == _SECOND and part.finding in graph.firsts:
                torch.cuda.current_stream().wait_event(graph.firsts[part.finding])
            if part == (self._late, _FIRST) and not graph.is_late and not self.snapshots.virtual:
                # Once: it delays each launch.
                graph.is_late = True
                self._sleep()
        out = call()
        for part in parts:
            if part.role == _FIRST:
                event = torch.cuda.Event()
                event.record()
                graph.firsts[part.finding] = event
            elif part.finding in graph.firsts and part.finding not in graph.findings:
                graph.findings.append(part.finding)
        return out

    def _before_capture(self) -> None:
        # In a capture no memory can be had, and no kernel should be loaded.
        self._prepare(torch.cuda.current_device())

    def _prepare(self, device: int) -> None:
        if self.snapshots.prepare(device) and self._late is not None:
            with torch.cuda.device(device):
                # Loads the kernel that spins.
                torch.cuda._sleep(1)

    def _launch(self, graph: Graph, call: Callable[[], None]) -> None:
        parts: list[_Part] = []
        frame: FrameType | None = sys._getframe(1) if self._launches else None
        while frame is not None and not parts:
            parts = self._launches.get((_file(frame.f_code), frame.f_lineno), [])
            frame = frame.f_back
        if not parts and not graph.findings:
            call()
            return
        self._watched(
            parts, call, torch.cuda.current_device(), lambda _: graph.written(), captured=graph.findings
        )

    def _watched(
        self,
        parts: list[_Part],
        call: Callable[[], Any],
        device: int,
        written_by: Callable[[Any], list[Bytes]],
        captured: Sequence[int],
    ) -> Any:
        """Makes a call that does operations of findings.

        Args:
            parts: the operations that it is.
            call: it.
            device: where it works.
            written_by: from what it returned, the memory that it wrote.
            captured: findings whose two operations are nodes of the graph that it launches.
        """
        self._prepare(device)
        nodes = [_Part(finding, _SECOND) for finding in captured]
        with self._lock:
            turns = [self._turn(part) for part in (*parts, *nodes)]
            for finding in captured:
                self._seen[finding].executions[_FIRST] += 1
        current = _raw_stream(device)
        if self._ordered and any(part.role == _SECOND for part in parts):
            _wait_for_all()
        if self._late is not None and _Part(self._late, _FIRST) in parts:
            self._delay(device, turns)
        out = call()
        written = written_by(out)
        for part, turn in zip((*parts, *nodes), turns, strict=True):
            if turn >= _EXECUTIONS:
                continue
            if part.role == _SECOND:
                self._after_second(part.finding, turn, written, current, device)
            else:
                self._after_first(part.finding, turn, written, current, device)
        return out

    def _after_first(
        self, finding: int, turn: int, written: Sequence[Bytes], stream: int, device: int
    ) -> None:
        seen = self._seen[finding]
        seen.stream, seen.device = stream, device
        if not self.snapshots.virtual:
            self.snapshots.take((finding, "first", turn), written, stream, device)
        elif not self._lifetime[finding]:
            # To look now would do the copy that is to be late.
            seen.written = written

    def _after_second(
        self, finding: int, turn: int, written: Sequence[Bytes], stream: int, device: int
    ) -> None:
        seen = self._seen[finding]
        self.snapshots.take((finding, "second", turn), written, stream, device)
        if seen.device >= 0:
            # Behind the first operation: shows what it overwrote if it came too late.
            both = [*written, *seen.written]
            self.snapshots.take((finding, "after", turn), both, seen.stream, seen.device)

    def _turn(self, part: _Part) -> int:
        executions = self._seen[part.finding].executions
        executions[part.role] += 1
        return executions[part.role] - 1

    def _delay(self, device: int, turns: list[int]) -> None:
        # On the virtual device copies are late by themselves, and nothing else can be.
        if device < 0 or min(turns) >= _EXECUTIONS or self.snapshots.virtual:
            return
        with torch.cuda.device(device):
            if not torch.cuda.is_current_stream_capturing():
                self._sleep()

    def _sleep(self) -> None:
        torch.cuda._sleep(self._milliseconds * _CYCLES_PER_MILLISECOND)

    def write(self, folder: Path) -> None:
        """Writes what was seen, one line each."""
        rank = os.environ.get("RANK", "")
        lines = []
        for (finding, what, turn), digest in self.snapshots.finish():
            line = {"rank": rank, "finding": finding, "what": what, "turn": turn, "bytes": digest}
            lines.append(json.dumps(line) + "\n")
        for finding, seen in enumerate(self._seen):
            counts = {"first": seen.executions[_FIRST], "second": seen.executions[_SECOND]}
            lines.append(json.dumps({"rank": rank, "finding": finding, "executions": counts}) + "\n")
        Path(folder, f"{os.getpid()}.jsonl").write_text("".join(lines))


class ConfirmMode(TorchDispatchMode):
    """Sees each operator of its thread."""

    def __init__(self, rerun: Rerun) -> None:
        """Belongs to the thread that makes it."""
        super().__init__()
        self._rerun = rerun

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Makes the call; looks at it if it belongs to a finding."""
        kwargs = kwargs or {}
        how = handling(types)
        if how is not Handling.OURS:
            return NotImplemented if how is Handling.WRAPPER else func(*args, **kwargs)
        parts = self._rerun.parts(func)
        graph = self._rerun.graphs.captured_by_current_stream()
        if graph is not None:
            out = self._rerun.capture(graph, parts, lambda: func(*args, **kwargs))
            graph.note(func, out)
            return out
        if not parts:
            return func(*args, **kwargs)
        return self._rerun.run(parts, lambda: func(*args, **kwargs), (args, kwargs))


def install() -> None:
    """Starts as the plan says; called once torch has been imported."""
    plan = json.loads(Path(os.environ[PLAN]).read_text())
    rerun = Rerun(plan)
    folder = Path(plan["folder"])
    atexit.register(rerun.write, folder)
    mode = ConfirmMode(rerun)
    mode.__enter__()
    rerun.graphs.watch()
    _watch_threads(rerun)


def _watch_threads(rerun: Rerun) -> None:
    thread: Any = threading.Thread
    bootstrap = thread._bootstrap_inner

    @functools.wraps(bootstrap)
    def run(self: threading.Thread) -> None:
        with ConfirmMode(rerun):
            bootstrap(self)

    thread._bootstrap_inner = run


# torch and this package.
_LIBRARIES: Final = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
_files: dict[CodeType, str] = {}


def _file(code: CodeType) -> str:
    path = _files.get(code)
    if path is None:
        name = code.co_filename
        path = _files[code] = name if name.startswith("<") else os.path.abspath(name)
    return path


def _device(values: Any) -> int:
    """Index of the device that works, or -1 if it is the host."""
    for leaf in tree_leaves(values):
        found = leaf.device if isinstance(leaf, torch.Tensor) else leaf
        if isinstance(found, torch.device) and found.type == "cuda":
            return torch.cuda.current_device() if found.index is None else int(found.index)
    return -1


def _raw_stream(device: int) -> int:
    return torch.cuda.current_stream(device).cuda_stream if device >= 0 else 0


def _wait_for_all() -> None:
    if torch.cuda.is_current_stream_capturing():
        return
    for device in range(torch.cuda.device_count()):
        torch.cuda.synchronize(device)
