"""Each wait of a pipeline is needed: with any one of them left out, the checker finds it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import streamsan

LOOP = Path(streamsan.__file__).parent / "_pipeline" / "run.py"

PROGRAM = """
import sys
import torch
import streamsan

left_out = int(sys.argv[1])
whole = torch.cuda.Stream.wait_event


def wait_event(stream, event):
    frame = sys._getframe(1)
    if frame.f_code.co_filename.endswith("_pipeline/run.py") and frame.f_lineno == left_out:
        return
    whole(stream, event)


torch.cuda.Stream.wait_event = wait_event
kept = torch.empty(1000, device="cuda")

items = [torch.full((1000,), float(item)) for item in range(12)]
pinned = [item.pin_memory() for item in items]
out = [torch.empty(1000, pin_memory=True) for _ in items]
streamsan.pipeline(lambda x: x.mul_(2), pinned, out=out, slots=2, overlap=True)
streamsan.pipeline(lambda x: x * 2, pinned, out=out, slots=2, overlap=True)
streamsan.pipeline(lambda x: torch.mul(x, 2, out=kept), pinned, out=out, slots=2, overlap=True)
streamsan.pipeline(lambda x: x * 2, items, slots=2, overlap=True)
"""


def waits():
    """The lines of the loop that make a stream wait for an event, but for those that clean up after a failure."""
    lines = LOOP.read_text().splitlines()
    found = [number for number, line in enumerate(lines, 1) if ".wait_event(" in line]
    cleaning = ("wait_event(uploaded)", "wait_event(computed)")
    return [number for number in found if not lines[number - 1].rstrip().endswith(cleaning)]


def errors(folder, line):
    program = folder / "program.py"
    program.write_text(PROGRAM)
    trace = folder / "run.sstrace"
    command = [sys.executable, "-m", "streamsan"]
    run = [*command, "run", "--device", "virtual", "--no-check", "-o", str(trace), str(program), str(line)]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    check = [*command, "check", "--output-format", "json", str(trace)]
    done = subprocess.run(check, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return [one for one in json.loads(done.stdout)["findings"] if one["level"] in ("error", "warning")]


def test_nothing_is_found_in_the_whole_pipeline(tmp_path):
    assert errors(tmp_path, 0) == []


@pytest.mark.parametrize("line", waits())
def test_a_wait_that_is_left_out_is_found(tmp_path, line):
    assert errors(tmp_path, line) != [], LOOP.read_text().splitlines()[line - 1]
