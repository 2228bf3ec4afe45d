"""A collective has finished long ago, but nobody has asked: nothing of the program is ordered after it."""

import time

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

device = torch.device("cuda", 0)
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, device_id=device)
x = torch.ones(1024, device=device)


def late():
    """Long enough for the group's own thread to look."""
    time.sleep(1.0)


dist.all_reduce(x)
reducing = dist.all_reduce(x, async_op=True)  # (1)
late()
total = x.sum()  # error: [SS601] after (1)
reducing.wait()
torch.cuda.synchronize()

# The stream that waits is the one that is current, and no other.
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
reducing = dist.all_reduce(x, async_op=True)  # (2)
late()
with torch.cuda.stream(side):
    reducing.wait()
    doubled = x * 2
print(x.mean().item())  # error: [SS602] after (2)
torch.cuda.synchronize()

# Enqueueing the next one polls the one before it.
reducing = dist.all_reduce(x, async_op=True)  # (3)
late()
others = [dist.all_reduce(torch.ones(8, device=device), async_op=True) for _ in range(100)]
total = x.sum()  # error: [SS601] after (3)
for work in (reducing, *others):
    work.wait()
torch.cuda.synchronize()

summed = functional.all_reduce(x, "sum", dist.group.WORLD)  # (4)
late()
with torch.cuda.stream(side):
    doubled = summed * 2
print(summed.mean().item())  # error: [SS602] after (4)
torch.cuda.synchronize()
dist.destroy_process_group()
