"""The hooks of a session that is recorded."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from streamsan._testing.ending import Ending
from streamsan._testing.follow import Follower
from streamsan._testing.judge import Judge, Verdict
from streamsan._testing.markers import MarkerCheck, Wanted, wanted
from streamsan._testing.restart import folder

_Failed: Any = pytest.fail.Exception


class Hazard(_Failed):  # type: ignore[misc]
    """A test that did all that it should has hazards."""


# How it is called where pytest shows exceptions.
Hazard.__module__ = "builtins"


def register(config: pytest.Config) -> None:
    """Begins to check."""
    judge = Judge(config)
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main") if hasattr(config, "workerinput") else "main"
    follower = Follower(judge, folder(), worker)
    ending = Ending(config, judge, follower)
    config.pluginmanager.register(Tests(config, follower, ending), "streamsan-session")
    config.pluginmanager.register(ending, "streamsan-ending")
    config.pluginmanager.register(MarkerCheck(), "streamsan-markers")


class Tests:
    """Judges each test by itself."""

    def __init__(self, config: pytest.Config, follower: Follower, ending: Ending) -> None:
        """Nothing was run so far."""
        self._config = config
        self._follower = follower
        self._ending = ending
        self._process = os.getpid()
        self._wanted = Wanted()
        # By phase: what its report is to carry.
        self._found: dict[str, tuple[Verdict, Path]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """The whole test, with the fixtures that it is the first or the last to need."""
        self._ending.outside()
        self._found.clear()
        self._wanted = wanted(item)
        self._follower.begin(item.nodeid)
        processes = self._follower.processes()
        try:
            return (yield)
        finally:
            if os.getpid() == self._process:
                if not self._wanted.silent:
                    self._ending.expect(item.nodeid, processes, self._wanted.ignore)
                self._follower.end()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, None, None]:
        """Fixtures. What they do is judged with the test, which has to run all the same."""
        try:
            yield
        except BaseException:
            self._judge("setup")
            raise

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, None, None]:
        """The test."""
        try:
            yield
        except pytest.skip.Exception:
            self._judge("call", fail=True)
            raise
        except BaseException:
            # A failure of its own stays; the report has the section.
            self._judge("call")
            raise
        self._judge("call", fail=True)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, None, None]:
        """The end of fixtures."""
        try:
            yield
        except BaseException:
            self._judge("teardown")
            raise
        self._judge("teardown", fail=True)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Adds the section, and marks what is to be called a hazard."""
        report = yield
        # Workers send what is in here, too.
        values = vars(report)
        if os.getpid() != self._process:
            values["streamsan_forked"] = True
        found = self._found.pop(call.when, None)
        if found is None:
            return report
        verdict, trace = found
        report.sections.append((f"streamsan: {verdict.title}", verdict.text))
        if not verdict.fails:
            values["streamsan_warnings"] = list(verdict.lines)
        elif report.failed:
            values["streamsan_trace"] = str(self._ending.keep(trace))
            values["streamsan_fingerprints"] = list(verdict.fingerprints)
            values["streamsan_ignore"] = list(self._wanted.ignore)
        if call.excinfo is not None and isinstance(call.excinfo.value, Hazard) and report.failed:
            values["streamsan_hazard"] = True
            # `HAZARD tests/test_pipeline.py::test_overlap - SS101 data.py:18 -> train.py:41`
            crash: Any = getattr(report.longrepr, "reprcrash", None)
            if crash is not None:
                crash.message = verdict.lines[0]
                if verdict.place is not None:
                    crash.path, crash.lineno = verdict.place
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
        """`H`, in the counts a failure."""
        # Another plugin may have decided to run the test again.
        if not (report.failed and getattr(report, "streamsan_hazard", False)):
            return None
        category = "failed" if report.when == "call" else "error"
        return category, "H", ("HAZARD", {"red": True})

    def _judge(self, phase: str, *, fail: bool = False) -> None:
        """Judges what was done since the last phase.

        Raises:
            Hazard: if it is to fail, and was not to be silent.
        """
        if os.getpid() != self._process:
            return
        if self._wanted.silent:
            self._follower.skip()
            return
        part = "-teardown" if phase == "teardown" else ""
        try:
            found = self._follower.judge(self._wanted.ignore, part)
        except (RuntimeError, OSError) as error:
            pytest.fail(f"streamsan cannot check this test: {error}", pytrace=False)
        if found is None:
            return
        self._found[phase] = found
        verdict = found[0]
        if verdict.fails and fail:
            text = "\n".join(verdict.lines)
            if self._config.option.showcapture != "all":
                # Then pytest would leave out the section.
                text += f"\n\n{verdict.text}"
            raise Hazard(text, pytrace=False) from None
