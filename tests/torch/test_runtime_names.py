"""The CUDA runtime that comes with the installed torch, against the names that our two libraries take from it.

A newer runtime has more functions. Each that we do not have reaches NVIDIA's runtime behind the virtual device, or goes
unseen on a GPU; so a new version of torch shows itself here.
"""

import re
from pathlib import Path

import pytest
from symbols import dynamic_symbols

import streamsan

torch = pytest.importorskip("torch")

OURS = Path(streamsan.__file__).parent / "lib"
TORCH = Path(torch.__file__).parent / "lib"
# What a call does to the order of things or to memory is in its name.
MATTERS = re.compile(
    r"Launch|Memcpy|Memset|Malloc|^cudaFree|Event(Record|Wait|Query|Synchronize|Create|Destroy)|WaitEvent|"
    r"Stream(Create|Destroy|Query|Synchronize|Update|BeginCapture|EndCapture|AddCallback)|GraphAdd|"
    r"GraphInstantiate|GraphExecUpdate|Graph.*Set(Params|Event|Enabled)|GraphRemove|Host(Alloc|Register|Unregister)|Semaphores|DeviceReset|"
    r"DeviceSynchronize|Ctx(RecordEvent|WaitEvent|Synchronize|StreamCreate)"
)
# Memory of arrays and graphics, which no tensor has; a node that does nothing; questions about nodes.
APART = re.compile(r"(Malloc|Free)\w*Array|EGL|GraphAddEmptyNode|GetParams|GetEvent")


def runtime():
    with open("/proc/self/maps") as maps:
        return next(line.split()[-1] for line in maps if "libcudart.so" in line)


@pytest.fixture(scope="module")
def offered():
    """The functions of NVIDIA's runtime as it is installed."""
    return {name for name in dynamic_symbols(runtime())[0] if re.match(r"(__)?cuda[A-Z]", name)}


@pytest.fixture(scope="module")
def forwarded():
    return dynamic_symbols(OURS / "libstreamsan_forward.so")[0]


def test_no_call_reaches_the_runtime_behind_the_virtual_device(offered):
    assert len(offered) > 400
    assert sorted(offered - dynamic_symbols(OURS / "libstreamsan_device.so")[0]) == []


@pytest.fixture(scope="module")
def wanted():
    """The calls that torch makes, with a library that makes them."""
    calls = {}
    for library in sorted(TORCH.glob("*.so")):
        for name in dynamic_symbols(library)[1]:
            if re.match(r"(__cuda|cuda|nccl)[A-Z]", name):
                calls.setdefault(name, library.name)
    assert {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaEventRecord", "ncclAllReduce"} <= set(calls)
    return calls


def test_torch_finds_each_call_that_it_makes(wanted):
    device = dynamic_symbols(OURS / "libstreamsan_device.so")[0]
    assert {name: library for name, library in wanted.items() if name not in device} == {}


def test_every_call_that_matters_is_seen_on_a_gpu(offered, forwarded):
    matter = {name for name in offered if MATTERS.search(name) and not APART.search(name)}
    assert {"cudaLaunchKernelExC", "cudaMemcpyAsync_ptsz", "cudaStreamWaitEvent"} <= matter
    assert sorted(matter - forwarded) == []


def test_every_operation_of_nccl_is_seen_on_a_gpu(wanted, forwarded):
    """All but what makes and asks for communicators, memory and operators."""
    operations = {
        name for name in wanted if re.match(r"nccl(?!Comm|DevComm|Get|Mem|RedOp|Win|GroupSim)", name)
    }
    assert {"ncclAllReduce", "ncclSend"} <= operations
    assert sorted(operations - forwarded) == []
