"""The library that records on a GPU, put in front of the virtual device as if that were NVIDIA's runtime.

So its calls, and the mode that only records, are tested without a GPU. Kernels compute nothing here, so that what the
programs assert of values is left out.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import ready_torch
from test_scripts import DEVICES, expectations, user_line

pytest.importorskip("torch")

HERE = Path(__file__).resolve().parent
SCRIPTS = sorted((HERE / "fail").glob("*.py"))


def forwarded(program, trace, **more):
    """Runs a program with both libraries: the first records and forwards, the second answers.

    `more` are further variables of its environment.
    """
    import streamsan

    package = Path(streamsan.__file__).resolve().parent
    device = package / "lib" / "libstreamsan_device.so"
    devices = DEVICES.search(program.read_text())
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAMSAN_")}
    environment |= {
        "STREAMSAN_TRACE": str(trace),
        "STREAMSAN_DEVICE": "cuda",
        "STREAMSAN_DEVICE_COUNT": devices[1] if devices else "1",
        "STREAMSAN_RUNTIME": str(device),
        "LD_PRELOAD": f"{package / 'lib' / 'libstreamsan_forward.so'}:{device}",
        "LD_LIBRARY_PATH": str(package / "lib" / "virtual"),
        "PYTHONPATH": str(package / "_startup"),
        **more,
    }
    libraries = [package / "lib" / f"libstreamsan_{name}.so" for name in ("forward", "device")]
    python = sys.executable if more else ready_torch.interpreter(*libraries, flags=("-O",), runtime=device)
    return subprocess.run(
        [python, "-O", str(program)], capture_output=True, text=True, timeout=300, env=environment
    )


@pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in SCRIPTS])
def test_findings_are_those_of_the_virtual_device(file, tmp_path):
    trace = tmp_path / "run.sstrace"
    done = forwarded(file, trace)
    if "CUBLAS_STATUS_NOT_INITIALIZED" in done.stderr:
        pytest.skip("the program uses cuBLAS, which needs a GPU")
    assert done.returncode == 0, done.stderr
    check = [sys.executable, "-m", "streamsan", "check", "--output-format", "json", str(trace)]
    report = json.loads(subprocess.run(check, capture_output=True, text=True, timeout=300).stdout)
    expected = expectations(file.read_text())
    named = {(rule, line) for rule, _, first, line in expected if first is None}
    found = []
    for finding in report["findings"]:
        line = user_line(finding["second"], file)
        earlier = None if (finding["rule"], line) in named else user_line(finding.get("first"), file)
        found.append((finding["rule"], finding["level"], earlier, line))
    assert sorted(found) == expected


EVENTS = """\
import torch

side = torch.cuda.Stream()
main = torch.cuda.current_stream()
x = torch.zeros(1024, device="cuda")
side.wait_stream(main)
with torch.cuda.stream(side):
    y = x * 2
x.record_stream(side)
del x
z = torch.empty(1024, device="cuda")
pinned = torch.empty(1024, pin_memory=True)
pinned.copy_(y, non_blocking=True)
event = torch.cuda.Event()
event.record(side)
event.synchronize()
pinned.tolist()
z.copy_(pinned, non_blocking=True)
z.cpu()
torch.cuda.synchronize()
z.fill_(1).sum().item()
weight = torch.ones(8, device="cuda", requires_grad=True)
side.wait_stream(main)
with torch.cuda.stream(side):
    loss = (weight * 3).sum()
loss.backward()
del pinned, loss
torch.empty(16, pin_memory=True)
"""


def seen(trace):
    """What a trace says, without what differs from run to run: addresses, and when torch's allocators find work finished.

    The device does not know that the caller of a query is an allocator, to which it says "finished" at once.
    """
    from streamsan import _core

    events = []
    for event in _core.read_events(str(trace)):
        if event["kind"] == "free_done" or event.get("observer") == "PinnedAllocator":
            continue
        line = next((frame["line"] for frame in event.pop("stack", []) if frame["user"]), None)
        event.pop("forward_stack", None)
        events.append(
            (line, {key: value for key, value in event.items() if key not in ("address", "number")})
        )
    return events


def test_events_are_those_of_the_virtual_device(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(EVENTS)
    own, other = tmp_path / "own.sstrace", tmp_path / "forwarded.sstrace"
    run = [sys.executable, "-m", "streamsan", "run", "--device", "virtual", "--no-check", "-o", str(own)]
    done = subprocess.run([*run, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    done = forwarded(program, other)
    assert done.returncode == 0, done.stderr
    assert seen(other) == seen(own)


CALLS = """\
import ctypes

import torch

x = torch.zeros(8, device="cuda")
cuda = ctypes.CDLL(None)
print(cuda.cudaMemcpy3D(None))
print(cuda.cudaStreamSynchronize(ctypes.c_void_p(0x1234)))
print(cuda.cudaMemcpy(ctypes.c_void_p(x.data_ptr()), None, ctypes.c_size_t(8), 1))
"""


def test_a_failure_leaves_nothing_and_a_call_that_is_not_recorded_is_a_gap(tmp_path):
    program, trace = tmp_path / "program.py", tmp_path / "run.sstrace"
    program.write_text(CALLS)
    done = forwarded(program, trace)
    # What the device answers is passed on: not supported, no such stream, no such memory.
    assert done.stdout.split() == ["801", "400", "1"], done.stderr
    events = [event for line, event in seen(trace) if line is None or line > 6]
    gaps = [event["detail"] for event in events if event["kind"] == "gap"]
    assert gaps == ["cudaMemcpy3D"]
    assert not [event for event in events if event["kind"] in ("op", "host_wait")]


# A runtime that knows one address, and a library that is linked with it.
OTHER_RUNTIME = """
int cudaMalloc(void **pointer, unsigned long size) { *pointer = (void *)0x1234000; return size ? 0 : 1; }
int cudaFree(void *pointer) { return pointer == (void *)0x1234000 ? 0 : 17; }
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaStreamQuery(void *stream) { return 34; }
int cudaMemcpy3D(const void *parameters) { return 33; }
"""
OTHER_LIBRARY = """
int cudaMalloc(void **, unsigned long), cudaFree(void *), cudaStreamQuery(void *), cudaMemcpy3D(const void *);
void *allocated(void) { void *pointer = 0; return cudaMalloc(&pointer, 4096) ? 0 : pointer; }
int freed(void *pointer) { return cudaFree(pointer); }
int queried(void) { return cudaStreamQuery(0); }
int copied(void) { return cudaMemcpy3D(0); }
"""
TWO_RUNTIMES = """
import ctypes

import torch

x = torch.zeros(1 << 20, device="cuda")
other = ctypes.CDLL("./libother.so")
other.allocated.restype = ctypes.c_void_p
other.freed.argtypes = [ctypes.c_void_p]
pointer = other.allocated()
print(hex(pointer), other.freed(pointer), other.queried(), other.copied())
y = x + 1
torch.cuda.synchronize()
print(torch.cuda.current_stream().query(), y.data_ptr() != pointer)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
def test_each_library_calls_the_runtime_that_it_is_linked_with(tmp_path, monkeypatch):
    (tmp_path / "runtime.c").write_text(OTHER_RUNTIME)
    (tmp_path / "other.c").write_text(OTHER_LIBRARY)
    compiler = ["cc", "-shared", "-fPIC", "-o"]
    runtime = "libcudart.so.12"
    for command in (
        [*compiler, runtime, "runtime.c", f"-Wl,-soname,{runtime}"],
        [*compiler, "libother.so", "other.c", f"./{runtime}", f"-Wl,-rpath,{tmp_path}"],
    ):
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    program, trace = tmp_path / "program.py", tmp_path / "run.sstrace"
    program.write_text(TWO_RUNTIMES)
    monkeypatch.chdir(tmp_path)
    done = forwarded(program, trace)
    assert done.stdout.splitlines() == ["0x1234000 0 34 33", "True True"], done.stderr
    events = [event for _, event in seen(trace)]
    # What the other runtime's caller does is in the trace too.
    assert [event for event in events if event["kind"] == "alloc" and event.get("size") == 4096]
    assert "cudaMemcpy3D" in [event["detail"] for event in events if event["kind"] == "gap"]
