"""Runs programs under `streamsan run --device cuda`."""

import json
import os
import subprocess
import sys

COMMAND = [sys.executable, "-m", "streamsan"]


def run(folder, source, *options, check=False, runner=(), environment=None):
    """Runs a program that is given as text; returns the process and the path of its trace."""
    program, trace = folder / "program.py", folder / "run.sstrace"
    program.write_text(source)
    command = [*COMMAND, "run", "--device", "cuda", "--force", "-o", str(trace), *options]
    if not check:
        command.append("--no-check")
    command += [*runner, str(program)]
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **(environment or {})},
    )
    return done, trace


def findings(*traces):
    """The findings of traces: rules, and lines of the later access in the program."""
    command = [*COMMAND, "check", "--output-format", "json", *map(str, traces)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    report = json.loads(done.stdout)
    return [(finding["rule"], line(finding["second"])) for finding in report["findings"]], report["gaps"]


def line(place):
    """The line of the program in a place."""
    stack = (place or {}).get("stack") or []
    return next((frame["line"] for frame in stack if frame["file"].endswith("program.py")), None)
