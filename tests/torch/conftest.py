"""Records programs in processes of their own."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import ready_torch
from device import DEVICE

pytest.importorskip("torch")


@dataclass
class Recording:
    """What one program did."""

    source: str
    file: Path
    events: list
    stdout: str
    names: dict = field(default_factory=dict)

    def __post_init__(self):
        for event in self.events:
            if event["kind"] == "name" and "block" in event:
                self.names[event["block"]] = event["name"]

    def lines(self, label):
        """Numbers of the lines that end with `# (label)`."""
        ends = re.compile(rf"#.*\({re.escape(label)}\)")
        return [number for number, line in enumerate(self.source.splitlines(), 1) if ends.search(line)]

    def user_line(self, event, key="stack"):
        """The line of the innermost frame of the program itself."""
        for frame in event.get(key, []):
            if frame["user"]:
                assert frame["file"] == str(self.file)
                return frame["line"]
        return None

    def at(self, label, *kinds):
        """Events of the labelled lines, of these kinds or of all."""
        lines = self.lines(label)
        assert lines, f"no line is labelled ({label})"
        return [
            event
            for event in self.events
            if self.user_line(event) in lines and (not kinds or event["kind"] in kinds)
        ]

    def kinds(self, label):
        return [event["kind"] for event in self.at(label)]

    def gaps(self):
        return [(event["reason"], event["detail"]) for event in self.events if event["kind"] == "gap"]

    def accesses(self, event):
        """Accesses as `mode name`, where blocks without a name are `new`."""
        return [f"{access['mode']} {self.names.get(access['block'], 'new')}" for access in event["accesses"]]


class Program:
    """Runs programs under `streamsan run`."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def run(self, source, *options, check=False, status=0, file=None, arguments=()):
        from streamsan import _core

        self.count += 1
        if file is None:
            file = self.folder / f"program{self.count}.py"
            file.write_text(source)
        trace = self.folder / f"program{self.count}.sstrace"
        command = [*ready_torch.command(), "run", "--device", DEVICE, "-o", str(trace)]
        if not check:
            command.append("--no-check")
        done = subprocess.run(
            [*command, *options, str(file), *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return Recording(source, file, _core.read_events(str(trace)), done.stdout)


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    os.environ.pop("PYTHONWARNINGS", None)
    return Program(tmp_path_factory.mktemp("programs").resolve())
