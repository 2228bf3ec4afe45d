"""What happens to a pipeline when page-locked memory is refused, and when its process is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-m", "streamsan"]

REFUSED = """
import torch
import streamsan

items = [torch.full((1000,), float(item)) for item in range(9)]
pinned = [torch.empty(1000, pin_memory=True) for _ in range(9)]


def failure(source, out):
    try:
        streamsan.pipeline(lambda x: x.mul_(2), source, out=out, slots=4, memory="4MiB")
    except streamsan.PipelineError as error:
        return error
    raise AssertionError("nothing was raised")


# Page-locked items and targets need no staging: nothing is refused.
big = [torch.full((1 << 18,), float(item)).pin_memory() for item in range(3)]
room = [torch.empty(1 << 18, pin_memory=True) for _ in range(3)]
streamsan.pipeline(lambda x: x.mul_(2), big, out=room)
assert [target[0].item() for target in room] == [0.0, 2.0, 4.0]
# Staging for pageable ones is refused, said, and lost for nobody else.
pageable = [torch.full((1 << 19,), float(item)) for item in range(3)]
try:
    streamsan.pipeline(lambda x: x.mul_(2), pageable)
    raise AssertionError("nothing was raised")
except streamsan.PipelineError as error:
    assert [one.stage for one in error.errors] == ["upload"] * 3, error
    assert "bytes of page-locked host memory for staging were refused" in str(error), error
try:
    streamsan.pipeline(lambda x: torch.cat([x, x]), big)
    raise AssertionError("nothing was raised")
except streamsan.PipelineError as error:
    assert [one.stage for one in error.errors] == ["download"] * 3, error
    assert "or give page-locked tensors" in str(error), error
# In place it is refused too: those items are staged, if there is room for that.
store = torch.ones(8, 1 << 18)
try:
    streamsan.pipeline(lambda x: x.mul_(2), list(store), register=True)
    raise AssertionError("nothing was raised")
except streamsan.PipelineError as error:
    assert all(one.stage == "upload" for one in error.errors) and not store.is_pinned()
# And nothing of it is left behind.
results = streamsan.pipeline(lambda x: x.mul_(2), items)
assert [result[0].item() for result in results] == [2.0 * item for item in range(9)]
"""

KILLED = """
import sys
import torch
import streamsan

records = streamsan.read_records(sys.argv[1], (64, 64), torch.float32)
with streamsan.FileSink(sys.argv[2]) as sink:
    streamsan.pipeline(lambda x: x.mul_(2), (record for _ in range(10_000) for record in records), out=sink)
"""


def test_page_locked_memory_that_is_refused(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(REFUSED)
    # What the program page-locks itself, and the staging of small items, but not of those of a MiB.
    limit = 9 * 4096 + 6 * (1 << 20) + (1 << 19)
    run = [*COMMAND, "run", "--device", "virtual", "-o", str(tmp_path / "run.sstrace"), str(program)]
    done = subprocess.run(
        run,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"STREAMSAN_PAGE_LOCKED_MEMORY": str(limit)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("least", [1, 40])
def test_a_pipeline_that_is_killed_leaves_whole_results_in_order(tmp_path, least):
    torch = pytest.importorskip("torch")
    values = torch.arange(8 * 64 * 64, dtype=torch.float32)
    (tmp_path / "in.raw").write_bytes(values.numpy().tobytes())
    program, out, trace = tmp_path / "program.py", tmp_path / "out.raw", tmp_path / "run.sstrace"
    program.write_text(KILLED)
    run = [*COMMAND, "run", "--device", "virtual", "--no-check", "-o", str(trace), str(program)]
    size = 4 * 64 * 64
    with subprocess.Popen(
        [*run, str(tmp_path / "in.raw"), str(out)], cwd=tmp_path, start_new_session=True
    ) as process:
        deadline = time.monotonic() + 300
        while not out.exists() or out.stat().st_size < least * size:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    written = out.read_bytes()
    expected = (values * 2).numpy().tobytes()
    repeated = expected * (len(written) // len(expected) + 1)
    assert written == repeated[: len(written)] and len(written) >= least * size
    # What was recorded until then can be checked, and has nothing wrong in it.
    done = subprocess.run(
        [*COMMAND, "check", "--output-format", "json", str(trace)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 4) and '"findings": []' in done.stdout.replace("\n", ""), done.stdout[:2000]
