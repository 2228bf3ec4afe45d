"""The end of a session: processes that tests have started, what no test did, files, the summary."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from streamsan._errors import TraceError
from streamsan._testing.follow import Follower
from streamsan._testing.judge import Judge, Verdict
from streamsan._testing.restart import folder

# How many bytes of traces with hazards one process keeps.
_ROOM: Final = 1 << 30


@dataclass
class Totals:
    """What this process and its workers have seen, in plain values.

    Attributes:
        tests: How many tests had operations.
        operations: How many these were.
        forked: How many tests ran in processes that were forked, which are not recorded.
        hidden: How many findings are not shown: known from a baseline, or of rules that are not reported.
        dropped: How many traces with hazards were not kept, for want of room.
        traces: The traces of the processes that ran tests.
        failing: Traces with hazards, what is ignored there, and the fingerprints of what is left.
        hazards: The tests with hazards.
        elsewhere: What is to be said of hazards outside of tests, as title and text.
        warnings: By test, one line for each finding that fails nothing.
        unreadable: What cannot be read, and why.
    """

    tests: int = 0
    operations: int = 0
    forked: int = 0
    hidden: int = 0
    dropped: int = 0
    traces: list[str] = field(default_factory=list)
    failing: list[tuple[str, list[str], list[str]]] = field(default_factory=list)
    hazards: list[str] = field(default_factory=list)
    elsewhere: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


class Ending:
    """Collects, and says it at the end."""

    def __init__(self, config: pytest.Config, judge: Judge, follower: Follower) -> None:
        """Nothing was seen so far."""
        self._config = config
        self._judge = judge
        self._follower = follower
        self._folder = folder()
        self._is_worker = hasattr(config, "workerinput")
        self._totals = Totals()
        # Traces of processes that may be there at the end: of which test, and what is ignored there.
        self._expected: list[tuple[str, Path, list[str]]] = []
        self._kept = 0
        self._has_run = False
        self._process = os.getpid()

    def keep(self, trace: Path) -> Path:
        """Puts the files of a test with hazards where they were asked for. Returns where the trace is."""
        # Each holds all that was recorded before it, too.
        self._kept += trace.stat().st_size
        if self._kept > _ROOM:
            trace.unlink()
            self._totals.dropped += 1
        target = self._config.option.streamsan_report
        if not target:
            return trace
        place = Path(self._config.invocation_params.dir, target)
        place.mkdir(parents=True, exist_ok=True)
        for suffix in (".html", ".sarif", ".sstrace"):
            source = trace.with_suffix(suffix)
            if source.exists():
                shutil.move(source, place / source.name)
        return place / trace.name

    def outside(self) -> None:
        """Judges what was done since the last test."""
        try:
            found = self._follower.judge(())
        except (RuntimeError, OSError) as error:
            self._totals.unreadable.append(f"outside of tests: {error}")
            return
        if found is not None:
            self._add("outside of tests", *found, [])

    def expect(self, label: str, trace: Path, ignore: Sequence[str]) -> None:
        """A test has ended which may have started processes that write `trace` and what is named after it."""
        self._expected.append((label, trace, list(ignore)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes what a report of a test carries, also one of a worker."""
        if self._is_worker:
            return
        self._has_run = True
        values: dict[str, Any] = vars(report)
        if "streamsan_trace" in values and report.failed:
            trace, ignore = values["streamsan_trace"], values["streamsan_ignore"]
            self._totals.failing.append((trace, ignore, values["streamsan_fingerprints"]))
            if report.nodeid not in self._totals.hazards:
                self._totals.hazards.append(report.nodeid)
        lines = values.get("streamsan_warnings", ())
        self._totals.warnings += [(report.nodeid, line) for line in lines]
        self._totals.forked += report.when == "call" and values.get("streamsan_forked", False)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended; one that crashed has said nothing."""
        said = getattr(node, "workeroutput", {}).get("streamsan")
        if said is None:
            return
        for key, value in json.loads(said).items():
            # Numbers are added, lists joined.
            setattr(self._totals, key, getattr(self._totals, key) + value)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Checks what is left, and chooses the exit status."""
        if os.getpid() != self._process:
            return
        totals = self._totals
        self.outside()
        self._check_whole()
        for label, trace, ignore in self._expected:
            self._check_processes(f"a process that {label} started", trace, ignore)
        totals.tests += self._follower.checked
        totals.operations += self._follower.operations
        totals.traces.append(str(self._follower.trace))
        if self._is_worker:
            worker: Any = self._config
            worker.workeroutput["streamsan"] = json.dumps(vars(totals))
            return
        unknown = "a process that no test started, or a worker that crashed"
        self._check_processes(unknown, self._folder / "main.sstrace", [])
        for trace in sorted(self._folder.glob("*-outside-process.sstrace")):
            self._check_processes("a process started outside of tests", trace, [])
        self._write_sarif()
        if (totals.elsewhere or totals.unreadable) and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Says what no test's report has said."""
        say, totals = terminalreporter, self._totals
        for title, text in totals.elsewhere:
            say.section(f"streamsan: {title}", red=True)
            say.line(text)
        loud = bool(
            totals.elsewhere
            or totals.failing
            or totals.warnings
            or totals.unreadable
            or totals.forked
            or totals.hidden
        )
        if not loud and (say.verbosity < 0 or not self._has_run):
            return
        say.section("streamsan")
        for label, line in totals.warnings:
            say.line(f"warning: {label} - {line}")
        for line in totals.unreadable:
            say.line(f"not checked: {line}")
        if totals.forked:
            say.line(f"not checked: {_count(totals.forked, 'test')} in processes that were forked")
        if totals.hidden:
            say.line(
                f"not shown: {_count(totals.hidden, 'finding')}"
                " (known from the baseline, or of rules that are not reported)"
            )
        seen = (
            f"{_count(totals.tests, 'test')} with CUDA operations ({_count(totals.operations, 'operation')})"
        )
        if totals.tests == 0:
            say.line("no CUDA operation was recorded in any test, so nothing was checked")
        elif not totals.failing:
            say.line(f"no hazards in {seen}")
        else:
            tests = f"in {len(totals.hazards)} of {seen}"
            others = f"in {_count(len(totals.elsewhere), 'place')} outside of tests"
            parts = [tests] * bool(totals.hazards) + [others] * bool(totals.elsewhere)
            say.line(f"hazards {' and '.join(parts)}")
            target = self._config.option.streamsan_report
            place = target or os.fspath(self._folder)
            say.line(f"traces{', HTML and SARIF' if target else ''}: {place}")
            there = [trace for trace, _, _ in totals.failing if os.path.exists(trace)]
            if there:
                say.line(f"again: streamsan check {shlex.quote(there[0])}")
            if totals.dropped:
                room = f"for more than {_ROOM >> 30} GiB of them"
                say.line(f"not kept: {_count(totals.dropped, 'trace')} with hazards, there is no room {room}")
        if os.environ.get("GITHUB_ACTIONS") == "true":
            say.line(self._annotations())

    def pytest_unconfigure(self) -> None:
        """Removes the traces, unless somebody will want to look at them."""
        if self._is_worker or os.getpid() != self._process:
            return
        from streamsan import _core

        _core.close()
        needed = any(Path(trace).is_relative_to(self._folder) for trace, _, _ in self._totals.failing)
        if not needed and not self._totals.unreadable:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _check_processes(self, what: str, trace: Path, ignore: list[str]) -> None:
        known = set(self._totals.traces)
        for path in sorted({trace, *trace.parent.glob(f"{trace.stem}-p*.sstrace")}):
            if not path.exists() or str(path) in known:
                continue
            from streamsan._check import check

            try:
                if check(path).coverage.operations == 0:
                    continue
                verdict = self._judge.check(path, ignore, reports=self._judge.wants_reports)
            except (TraceError, OSError, RuntimeError) as error:
                self._totals.unreadable.append(f"{what}: {error}")
                continue
            self._totals.hidden += verdict.hidden
            self._add(what, verdict, path, ignore)

    def _check_whole(self) -> None:
        """Checks the trace of this process again from its file: nothing may be missing, nothing lost."""
        if self._follower.operations_recorded() == 0:
            return
        trace = self._follower.trace
        try:
            verdict, missed = self._follower.whole()
        except (RuntimeError, OSError) as error:
            self._totals.unreadable.append(f"{trace}: {error}")
            return
        self._totals.hidden += verdict.hidden
        if verdict.lost:
            self._totals.unreadable.append(f"{trace}: a part of it was lost, such as when the disk is full")
        if missed and verdict.fails:
            self._totals.failing.append((str(trace), [], list(verdict.fingerprints)))
            title = f"found when the whole run was checked again: {', '.join(missed)}"
            self._totals.elsewhere.append((title, verdict.text))

    def _add(self, what: str, verdict: Verdict, trace: Path, ignore: Sequence[str]) -> None:
        """Takes what was found elsewhere than in a test."""
        if verdict.fails:
            kept = self.keep(trace)
            self._totals.failing.append((str(kept), list(ignore), list(verdict.fingerprints)))
            self._totals.elsewhere.append((f"{what}: {verdict.title}", verdict.text))
        else:
            self._totals.warnings += [(what, line) for line in verdict.lines]

    def _write_sarif(self) -> None:
        """Writes one file for code scanning, also if there is nothing in it: that closes what is repaired."""
        target = self._config.option.streamsan_report
        if not target:
            return
        from streamsan import _core

        place = Path(self._config.invocation_params.dir, target)
        place.mkdir(parents=True, exist_ok=True)
        traces = [trace for trace, _, _ in self._totals.failing if os.path.exists(trace)]
        empty = self._folder / "nothing.sstrace"
        if not traces:
            _core.write_program("nothing", "streams default\n", str(empty))
            traces = [str(empty)]
        whole = place / "streamsan.sarif"
        done = self._judge.command(["--force", "-o", str(whole), *traces])
        if done.returncode not in (0, 1, 4):
            self._totals.unreadable.append(f"{whole}: {done.stderr.strip()}")
            return
        # What the marker of one test ignores is ignored there alone.
        wanted = {one for _, _, fingerprints in self._totals.failing for one in fingerprints}
        document = json.loads(whole.read_text(encoding="utf-8"))
        for run in document["runs"]:
            run["results"] = [
                result
                for result in run.get("results", ())
                if wanted.intersection(result.get("partialFingerprints", {}).values())
            ]
        whole.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")

    def _annotations(self) -> str:
        """Returns the lines of which GitHub makes marks in the source."""
        lines: dict[str, None] = {}
        for trace, ignore, _ in self._totals.failing:
            if not os.path.exists(trace):
                continue
            options = ["--ignore", ",".join(ignore)] if ignore else []
            done = self._judge.command(["--output-format", "github", *options, trace])
            lines.update(dict.fromkeys(line for line in done.stdout.splitlines() if line.startswith("::")))
        return "\n".join(lines)


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
