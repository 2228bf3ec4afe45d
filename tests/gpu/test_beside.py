"""Beside other tools, in several processes, with other allocators."""

import pytest
from recorded import findings, run

RACE = """\
import torch

side = torch.cuda.Stream()
x = torch.zeros(1 << 20, device="cuda")
with torch.cuda.stream(side):
    y = x * 2
torch.cuda.synchronize()
"""

PROFILED = """\
import torch
from torch.profiler import ProfilerActivity, profile

x = torch.ones(1 << 20, device="cuda")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
    (x * 2).sum().item()
kernels = [event for event in profiled.events() if event.device_type == torch.autograd.DeviceType.CUDA]
print(len(kernels) >= 2)
"""

LAUNCHED = """\
import os
import torch
import torch.distributed

torch.cuda.set_device(0)
torch.distributed.init_process_group("gloo")
x = torch.ones(1 << 20, device="cuda")
if torch.distributed.get_rank() == 1:
    with torch.cuda.stream(torch.cuda.Stream()):
        x.mul_(2)
torch.cuda.synchronize()
torch.distributed.barrier()
torch.distributed.destroy_process_group()
"""

WORKERS = """\
import torch


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((4,), float(index))


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Squares(), batch_size=2, num_workers=2, pin_memory=True)
    side = torch.cuda.Stream()
    total = torch.zeros((), device="cuda")
    for batch in loader:
        with torch.cuda.stream(side):
            moved = batch.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(side)
        moved.record_stream(torch.cuda.current_stream())
        total += moved.sum()
    print(total.item())
"""


def test_the_profiler_sees_kernels(tmp_path):
    done, trace = run(tmp_path, PROFILED)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"
    assert findings(trace) == ([], [])


def test_each_process_of_torchrun_has_a_trace(tmp_path):
    runner = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
    done, _ = run(tmp_path, LAUNCHED, runner=runner)
    assert done.returncode == 0, done.stderr
    traces = sorted(tmp_path.glob("run*.sstrace"))
    found = [findings(path)[0] for path in traces]
    assert len(traces) == 3, "the launcher and two processes"
    assert sorted(map(len, found)) == [0, 0, 1], found
    assert [("SS101", 10)] in found or [("SS103", 10)] in found, found


def test_a_loader_with_workers_and_page_locking_is_clean(tmp_path):
    done, trace = run(tmp_path, WORKERS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "112.0\n"
    assert findings(trace)[0] == []


@pytest.mark.parametrize("setting", ["expandable_segments:True", "backend:cudaMallocAsync"])
def test_a_race_is_found_with_other_allocators(tmp_path, setting):
    done, trace = run(tmp_path, RACE, environment={"PYTORCH_ALLOC_CONF": setting})
    assert done.returncode == 0, done.stderr
    assert findings(trace)[0] == [("SS101", 6)]
