"""Page protection: what the host does with page-locked memory through pointers, seen as faults."""

import subprocess
import sys

import pytest

pytest.importorskip("numpy")

SOURCE = """\
import ctypes
import faulthandler
import tempfile

import torch

n = 1 << 16
x = torch.ones(n, device="cuda")
pinned = torch.zeros(n, pin_memory=True)
view = pinned.numpy()
pointer = ctypes.cast(pinned.data_ptr(), ctypes.POINTER(ctypes.c_float))

pinned.copy_(x, non_blocking=True)
assert view[5] == 1  # (numpy reads a download)
torch.cuda.synchronize()
assert view[5] == 1 and view.sum() == n  # (after the wait)

x.copy_(pinned, non_blocking=True)
view[3]  # (numpy reads an upload)
view[7] = 2  # (numpy writes an upload)
torch.cuda.synchronize()
view[7] = 3  # (written after the wait)

x.copy_(pinned, non_blocking=True)
view += 0  # (numpy's loop writes an upload)
torch.cuda.synchronize()

faulthandler.enable()
pinned.copy_(x, non_blocking=True)
assert pointer[100] == 1  # (ctypes)
assert pointer[101] == 1  # (ctypes again)
torch.cuda.synchronize()

pinned[: n // 2].copy_(x[: n // 2], non_blocking=True)
view[n // 2 + 9]  # (the other half)
torch.cuda.synchronize()

pinned.copy_(x, non_blocking=True)
pinned[0].item()  # (operator)
torch.cuda.synchronize()

event = torch.cuda.Event()
pinned.copy_(x, non_blocking=True)
event.record()
event.synchronize()
view[0]  # (after the event)

pinned.copy_(x, non_blocking=True)
with tempfile.TemporaryFile() as file:
    file.raw.write(memoryview(view))  # (written to a file)
    torch.cuda.synchronize()
    x.copy_(pinned, non_blocking=True)
    file.raw.seek(0)
    file.raw.write(memoryview(view))  # (an upload written to a file)
    file.raw.seek(0)
    assert file.raw.readinto(memoryview(view)) == 4 * n  # (read from a file)
torch.cuda.synchronize()

late = torch.zeros(n, pin_memory=True)
late.copy_(x, non_blocking=True)
late.numpy()[9]  # (the address was given away late)
torch.cuda.synchronize()

for turn in range(4):
    step = torch.full((n,), float(turn), pin_memory=True)  # (a fresh buffer for each turn)
    x.copy_(step, non_blocking=True)
    del step
made = torch.tensor([1.0] * n, pin_memory=True)  # (a fresh tensor)
x.copy_(made, non_blocking=True)
"""


@pytest.fixture(scope="module", params=[(), ("--protect-host-memory",)], ids=["as it is", "all memory"])
def recording(program, request):
    return program.run(SOURCE, *request.param)


@pytest.mark.parametrize(
    ("line", "mode", "offset"),
    [
        ("numpy reads a download", "read", 20),
        ("numpy writes an upload", "write", 28),
        ("numpy's loop writes an upload", "write", 0),
        ("ctypes", "read", 400),
        ("written to a file", "read", 0),
        ("read from a file", "write", 0),
    ],
)
def test_an_access_through_a_pointer_is_seen(recording, line, mode, offset):
    [event] = recording.at(line, "host_access")
    [access] = event["accesses"]
    assert event["label"] == "memory access"
    assert recording.names[access["block"]] == "pinned"
    assert (access["mode"], access["offset"], access["length"]) == (mode, offset, 1)


@pytest.mark.parametrize(
    "line",
    [
        "after the wait",
        "numpy reads an upload",
        "written after the wait",
        "ctypes again",
        "the other half",
        "after the event",
        "an upload written to a file",
        "a fresh buffer for each turn",
        "a fresh tensor",
    ],
)
def test_what_is_no_conflict_is_not_seen(recording, line):
    assert recording.at(line, "host_access") == []


def test_a_copy_counts_that_was_pending_when_the_address_was_given_away(recording):
    [event] = recording.at("the address was given away late", "host_access")
    [access] = event["accesses"]
    assert (recording.names[access["block"]], access["offset"]) == ("late", 36)


def test_an_operator_is_recorded_once(recording):
    [event] = recording.at("operator", "host_access")
    assert event["label"] == "aten::_local_scalar_dense"


def test_pointers_need_no_note(recording):
    assert [event for event in recording.events if event["kind"] == "escape"] == []


def test_the_programs_own_fault_ends_it(tmp_path):
    file = tmp_path / "crash.py"
    file.write_text(
        "import ctypes, torch\n"
        "x = torch.ones(4096, device='cuda')\n"
        "p = torch.empty(4096, pin_memory=True)\n"
        "p.copy_(x, non_blocking=True)\n"
        "ctypes.string_at(8)\n"
    )
    command = [sys.executable, "-m", "streamsan", "run", "--no-check", "--protect-host-memory"]
    command += ["-o", str(tmp_path / "t.sstrace"), str(file)]
    done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    assert done.returncode == 139
