"""Each wait of a pipeline, and of a prefetch, is needed: with any one left out, the checker finds it."""

import json
import subprocess
from pathlib import Path

import pytest
import ready_torch

import streamsan

HOME = Path(streamsan.__file__).parent / "_pipeline"

PROGRAM = """
import sys
import torch
import streamsan

left_out = sys.argv[1], int(sys.argv[2])


def without(name):
    whole = getattr(torch.cuda.Event if name == "synchronize" else torch.cuda.Stream, name)

    def method(*arguments):
        frame = sys._getframe(1)
        place = frame.f_code.co_filename.rpartition("/_pipeline/")[2], frame.f_lineno
        if place != left_out:
            whole(*arguments)

    return method


torch.cuda.Stream.wait_event = without("wait_event")
torch.cuda.Event.synchronize = without("synchronize")
kept = torch.empty(1000, device="cuda")
weight = torch.ones(1000, device="cuda")
torch.cuda.synchronize()


def made_on_the_device():
    for item in items:
        yield torch.empty(1000, pin_memory=True).copy_(weight * item[0], non_blocking=True)


items = [torch.full((1000,), float(item)) for item in range(8)]
pinned = [item.pin_memory() for item in items]
out = [torch.empty(1000, pin_memory=True) for _ in items]
large = [torch.empty(4000, pin_memory=True) for _ in items]
for pack in (1, 3):
    options = {"slots": 2, "pack": pack, "item_bytes": 4096}
    streamsan.pipeline(lambda x: x.mul_(2), pinned, out=out, **options)
    streamsan.pipeline(lambda x: x * 2, pinned, out=out, **options)
    streamsan.pipeline(lambda x: torch.mul(x, 2, out=kept), pinned, out=out, **options)
    streamsan.pipeline(lambda x: (x * 2).repeat(4), pinned, out=large, **options)
    streamsan.pipeline(lambda x: (x * 2).repeat(4), pinned, **options)
    streamsan.pipeline(lambda x: x * 2, items, **options)
    streamsan.pipeline(lambda x: x * 2, made_on_the_device(), **options)
batches = streamsan.prefetch(pinned, slots=2)
next(batches)
with torch.cuda.stream(torch.cuda.Stream()):
    for batch in batches:
        batch.mul_(2)
rows = [item.reshape(-1, 4).contiguous() for item in pinned]
streamsan.pipeline(lambda x: x.mul_(2), rows, memory=2048, slots=2, chunk=True)
streamsan.pipeline(lambda x: x * 2, rows, memory=2048, slots=2, chunk=True, out=[x.view(-1, 4) for x in out])
"""


def waits():
    """Files and lines of the pipeline with a wait for an event, but for those that clean up after a failure."""
    found = []
    for file in sorted(HOME.glob("*.py")):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            call = line.strip()
            # Those of a stream end a run, and that of `events[2]` only bounds how far the host runs ahead.
            of_streams = call in (
                "up.synchronize()",
                "self.down.synchronize()",
                "stream.synchronize()",
                "torch.cuda.synchronize()",
            )
            cleaning = call.endswith(
                ("wait_event(uploaded)", "wait_event(computed)", "events[2].synchronize()")
            )
            if (".wait_event(" in call or ".synchronize()" in call) and not (of_streams or cleaning):
                found.append((file.name, number))
    return found


def errors(folder, file, line):
    program = folder / "program.py"
    program.write_text(PROGRAM)
    trace = folder / "run.sstrace"
    run = [*ready_torch.command(), "run", "--device", "virtual", "--no-check", "-o", str(trace)]
    run += [str(program), file, str(line)]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    check = [*ready_torch.PLAIN, "check", "--output-format", "json", str(trace)]
    done = subprocess.run(check, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return [one for one in json.loads(done.stdout)["findings"] if one["level"] in ("error", "warning")]


def test_nothing_is_found_in_the_whole_pipeline(tmp_path):
    assert errors(tmp_path, "", 0) == []


@pytest.mark.parametrize(("file", "line"), waits())
def test_a_wait_that_is_left_out_is_found(tmp_path, file, line):
    assert errors(tmp_path, file, line) != [], (HOME / file).read_text().splitlines()[line - 1]
