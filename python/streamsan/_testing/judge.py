"""Checks traces as the project's settings say, by `streamsan check`."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from streamsan._testing.restart import clean_environment


@dataclass(frozen=True)
class Verdict:
    """What checking a trace, or a part of one, has found.

    Attributes:
        title: `1 error`, `2 errors, 1 warning`.
        lines: One for each finding: `SS101 data.py:18 -> train.py:41`.
        text: The full report.
        place: The file and line of the later operation of the first finding.
        fails: Whether it is to fail the test.
        fingerprints: Those of the findings.
        later: The numbers of their later operations.
        lost: Whether a part of the trace is lost.
        hidden: How many findings are not shown: known from a baseline, or of rules that are not reported.
    """

    title: str
    lines: tuple[str, ...]
    text: str
    place: tuple[str, int] | None
    fails: bool
    fingerprints: tuple[str, ...]
    later: tuple[int, ...]
    lost: bool
    hidden: int


class Judge:
    """Runs the check."""

    def __init__(self, config: pytest.Config) -> None:
        """Reads what is set."""
        self._root = config.rootpath
        self._options = ["--error-on-warning"] if config.getini("streamsan_error_on_warning") else []
        baseline = config.option.streamsan_baseline
        if baseline:
            path = Path(config.invocation_params.dir, baseline)
            if not path.is_file():
                raise pytest.UsageError(f"--streamsan-baseline: there is no file {path}")
            self._options += ["--baseline", str(path)]
        self.wants_reports = bool(config.option.streamsan_report)

    def check(self, trace: Path, ignore: Sequence[str] = (), *, reports: bool = False) -> Verdict:
        """Checks one trace. With `reports`, HTML and SARIF are beside it afterwards.

        Raises:
            RuntimeError: if it cannot be checked; the text says why.
        """
        text = trace.with_suffix(".txt")
        outputs = [text, *((trace.with_suffix(".html"), trace.with_suffix(".sarif")) if reports else ())]
        options = [word for output in outputs for word in ("-o", str(output))]
        done = self.command(
            ["--output-format", "json", "--force", *options, *self._ignore(ignore), str(trace)]
        )
        if done.returncode not in (0, 1, 4):
            raise RuntimeError(done.stderr.strip() or f"streamsan check ended with status {done.returncode}")
        document = json.loads(done.stdout)
        full = text.read_text(encoding="utf-8").strip("\n")
        text.unlink()
        return _verdict(document, full, done.returncode == 1)

    def command(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Runs `streamsan check` where the project's settings are found."""
        command = [sys.executable, "-m", "streamsan", "check", "--color", "never", *self._options, *arguments]
        return subprocess.run(
            command, cwd=self._root, env=clean_environment(), capture_output=True, text=True, check=False
        )

    def _ignore(self, ignore: Sequence[str]) -> list[str]:
        """The option takes the place of the setting, so it has to say both."""
        return ["--ignore", ",".join([*ignore, *_configured_ignores(self._root)])] if ignore else []


def unknown_rule(word: str) -> str | None:
    """Returns what is wrong if no rule is meant by the word."""
    from streamsan import _core

    try:
        _core.check([], [], [word])
    except ValueError as error:
        return str(error)
    return None


def _configured_ignores(root: Path) -> list[str]:
    """Returns `ignore` of the nearest `[tool.streamsan]`, which was found to be well-formed before."""
    # pytest itself needs the second one where there is no first one.
    toml: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    for place in (root, *root.parents):
        try:
            text = (place / "pyproject.toml").read_text(encoding="utf-8")
        except OSError:
            continue
        if "streamsan" not in text:
            continue
        settings = toml.loads(text).get("tool", {}).get("streamsan")
        if settings is not None:
            return list(settings.get("ignore", ()))
    return []


def _verdict(document: dict[str, Any], text: str, fails: bool) -> Verdict:
    findings = document["findings"]
    counts = [
        f"{count} {level}{'' if count == 1 else 's'}"
        for level in ("error", "warning", "note")
        if (count := sum(finding["level"] == level for finding in findings))
    ]
    places = [_place(finding["second"]) for finding in findings]
    return Verdict(
        title=", ".join(counts) or "nothing found",
        lines=tuple(_line(finding) for finding in findings),
        text=text,
        place=places[0] if places else None,
        fails=fails,
        fingerprints=tuple(finding["fingerprint"] for finding in findings),
        later=tuple(finding["second"]["op"] for finding in findings),
        lost=any(gap["reason"] in ("lost-events", "damaged") for gap in document["gaps"]),
        hidden=document["hidden"],
    )


def _line(finding: dict[str, Any]) -> str:
    ends = [_place(finding[key]) for key in ("first", "second") if finding[key]]
    where = " -> ".join(f"{file}:{line}" for file, line in (end for end in ends if end is not None))
    return f"{finding['rule']} {where or finding['name']}"


def _place(operation: dict[str, Any]) -> tuple[str, int] | None:
    stack = operation["stack"]
    return (stack[0]["file"], stack[0]["line"]) if stack else None
