"""Collectives of NCCL in a group of one process give back what they were given, on whatever stream they ran."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

device = torch.device("cuda", 0)
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, device_id=device)
x = torch.arange(8.0, device=device)
kept = x.clone()


def check(result, factor=1.0):
    torch.testing.assert_close(result, kept.to(result.dtype) * factor)
    if result is not x:
        result.zero_()


def given_back(operation):
    out = torch.zeros(8, device=device)
    operation(out)
    check(out)


for reduction in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX, dist.ReduceOp.PRODUCT):
    dist.all_reduce(x, reduction)
dist.broadcast(x, 0)
dist.reduce(x, 0)
check(x)
for dtype in (torch.half, torch.float, torch.double):
    scaled = x.to(dtype, copy=True)
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(0.25))
    check(scaled, 0.25)
    scaled = x.to(dtype, copy=True)
    factor = torch.tensor(3.0, device=device, dtype=dtype)
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(factor))
    check(scaled, 3.0)

given_back(lambda out: dist.all_gather([out], x))
given_back(lambda out: dist.all_gather_into_tensor(out, x))
given_back(lambda out: dist.reduce_scatter(out, [x]))
given_back(lambda out: dist.reduce_scatter_tensor(out, x))
given_back(lambda out: dist.all_to_all_single(out, x))
given_back(lambda out: dist.all_to_all_single(out, x, [8], [8]))
given_back(lambda out: dist.all_to_all([out], [x]))
given_back(lambda out: dist.gather(x, [out], 0))
given_back(lambda out: dist.scatter(out, [x], 0))

gathered = [None]
dist.all_gather_object(gathered, {"epoch": 3})
assert gathered == [{"epoch": 3}]
dist.barrier()

work = dist.all_reduce(x, async_op=True)
work.wait()
check(x)
# Whoever has asked often enough knows that it is done.
polled = torch.zeros(8, device=device)
work = dist.all_gather_into_tensor(polled, x, async_op=True)
while not work.is_completed():
    pass
check(polled)
first, second = torch.zeros(8, device=device), torch.zeros(8, device=device)
with dist._coalescing_manager(device=device, async_ops=True) as coalesced:
    dist.all_gather_into_tensor(first, x)
    dist.all_gather_into_tensor(second, x)
coalesced.wait()
check(first)
check(second)
with dist._coalescing_manager(device=device):
    dist.all_reduce(x)
    dist.all_reduce(first)
check(x)

for group in (dist.group.WORLD, dist.new_group([0]), dist.split_group(split_ranks=[[0]])):
    check(functional.all_reduce(x, "sum", group))
    check(functional.all_gather_tensor(x, 0, group))
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    dist.all_reduce(x)
torch.cuda.current_stream().wait_stream(side)
check(x)
dist.destroy_process_group()
