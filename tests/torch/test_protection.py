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


def test_a_signal_that_was_sent_ends_it(tmp_path):
    file = tmp_path / "sent.py"
    file.write_text(
        "import os, signal, sys, torch\n"
        "if sys.argv[1:]:\n"
        "    import faulthandler; faulthandler.enable()\n"
        "x = torch.ones(4096, device='cuda')\n"
        "p = torch.empty(4096, pin_memory=True)\n"
        "p.copy_(x, non_blocking=True)\n"
        "os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    command = [sys.executable, "-m", "streamsan", "run", "--no-check", "--protect-host-memory", "--force"]
    command += ["-o", str(tmp_path / "t.sstrace"), str(file)]
    for arguments in [], ["with faulthandler"]:
        done = subprocess.run(command + arguments, capture_output=True, timeout=300, check=False)
        assert done.returncode == 139, done
        assert done.stderr.count(b"Segmentation fault") == len(arguments)


SYSTEM_CALLS = """\
import ctypes
import os
import socket
import subprocess
import threading
import time

import torch

n = 2048
x = torch.zeros(n, dtype=torch.uint8, device="cuda")
pinned = torch.zeros(2 * n, dtype=torch.uint8, pin_memory=True)
view = memoryview(pinned.numpy())
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
read_end, write_end = os.pipe()

with torch.cuda.stream(side):
    pinned[n:].copy_(x, non_blocking=True)
assert os.writev(write_end, [view[:100]]) == 100  # (beside)
assert here.sendmsg([view[:100]]) == 100  # (beside)
side.synchronize()

with torch.cuda.stream(side):
    x.copy_(pinned[n:], non_blocking=True)
assert os.readv(read_end, [view[:50], view[50:100]]) == 100  # (beside)
assert there.recvmsg_into([view[:100]])[0] == 100  # (beside)
here.send(bytes(100))
assert there.recvfrom_into(view[:100])[0] == 100  # (beside)
side.synchronize()

os.write(write_end, bytes(n + 8))
with torch.cuda.stream(side):
    x.copy_(pinned[n:], non_blocking=True)
assert os.readv(read_end, [view[:n], view[n:]]) == n + 8  # (in the second piece)
side.synchronize()


def later(what, begun):
    thread = threading.Thread(target=what)
    thread.start()
    time.sleep(0.3)
    begun()
    here.send(bytes(100))
    thread.join()


def beside_an_upload():
    assert there.recv_into(view[:100]) == 100  # (blocked beside a copy)


def begin_an_upload():
    with torch.cuda.stream(side):
        x.copy_(pinned[n:], non_blocking=True)


later(beside_an_upload, begin_an_upload)
side.synchronize()


def after_the_wait():
    assert there.recv_into(view) == 100  # (the peer sends after the wait)


begin_an_upload()
later(after_the_wait, side.synchronize)


def too_early():
    assert there.recv_into(view[n:]) == 100  # (the peer sends too early)


later(too_early, begin_an_upload)
side.synchronize()

c, c_with_interpreter = ctypes.CDLL(None), ctypes.PyDLL(None)
c.fdopen.restype = ctypes.c_void_p
child = subprocess.Popen(["sh", "-c", "sleep 0.6; echo text"], stdout=subprocess.PIPE)
stream = ctypes.c_void_p(c.fdopen(child.stdout.fileno(), b"r"))
begin_an_upload()


def read_line():
    c.fgets(ctypes.c_void_p(pinned.data_ptr() + n), 64, stream)  # (with a lock of C)


thread = threading.Thread(target=read_line)
thread.start()
time.sleep(0.3)
c_with_interpreter.flockfile(stream)
c_with_interpreter.funlockfile(stream)
thread.join()
side.synchronize()
assert bytes(view[n : n + 5]) == b"text\\n"
"""


@pytest.fixture(scope="module")
def system_calls(program):
    return program.run(SYSTEM_CALLS)


@pytest.mark.parametrize("line", ["blocked beside a copy", "the peer sends after the wait"])
def test_a_system_call_is_what_it_has_done(system_calls, line):
    assert system_calls.at(line, "host_access") == []


@pytest.mark.parametrize("line", ["in the second piece", "the peer sends too early"])
def test_a_system_call_is_seen_where_it_meets_a_copy(system_calls, line):
    [event] = system_calls.at(line, "host_access")
    [access] = event["accesses"]
    assert (access["mode"], access["offset"]) == ("write", 2048)


def test_who_waits_with_the_interpreter_for_the_faulting_code_goes_on(system_calls):
    # The last of the program, in which nothing hangs; its place is not known.
    accesses = [event for event in system_calls.events if event["kind"] == "host_access"]
    assert len([event for event in accesses if event["label"] == "memory access"]) == 3
