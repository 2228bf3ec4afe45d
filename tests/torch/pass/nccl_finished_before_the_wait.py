"""A collective is waited for long after it has finished. Newer torch then leaves the stream's wait out."""

import datetime
import time

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

device = torch.device("cuda", 0)
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, device_id=device)
x = torch.ones(1024, device=device)
out = torch.zeros(1024, device=device)


def late():
    """Long enough for the group's own thread to look."""
    time.sleep(1.0)


dist.all_gather_into_tensor(out, x)
work = dist.all_gather_into_tensor(out, x, async_op=True)
late()
work.wait()
total = out.sum()

work = dist.all_reduce(x, async_op=True)
late()
work.wait(datetime.timedelta(seconds=30))
x.add_(1)

work = dist.all_reduce(x, async_op=True)
late()
work.get_future().wait()
x.add_(1)

# Its answer is that it has finished, so no stream has to wait.
work = dist.all_reduce(x, async_op=True)
late()
while not work.is_completed():
    pass
x.add_(1)

summed = functional.all_reduce(x, "sum", dist.group.WORLD)
late()
total = summed + 1

with dist._coalescing_manager(device=device, async_ops=True) as coalesced:
    dist.all_reduce(x)
    dist.all_reduce(out)
late()
coalesced.wait()
x.add_(out)

# The callback's stream waits for the collective by way of the future.
work = dist.all_reduce(x, async_op=True)
late()
more = work.get_future().then(lambda future: future.value()[0] + 1).wait()
work.wait()

# Waiting for a barrier holds the host.
host = torch.empty(1024, pin_memory=True)
host.copy_(x, non_blocking=True)
work = dist.barrier(async_op=True)
late()
work.wait()
host.add_(1)

side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
work = dist.all_reduce(x, async_op=True)
late()
with torch.cuda.stream(side):
    work.wait()
    doubled = x * 2
work.wait()
tripled = x * 3
torch.cuda.synchronize()
dist.destroy_process_group()
