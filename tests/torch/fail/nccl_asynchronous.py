"""An asynchronous collective runs on a stream of its group: only `wait()` orders the caller's stream after it."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(1024, device="cuda")
out = torch.zeros(1024, device="cuda")
gathering = dist.all_gather_into_tensor(out, x, async_op=True)  # (1)
total = out.sum()  # error: [SS601] after (1)
x.add_(1)  # error: [SS601] after (1)
gathering.wait()
torch.cuda.synchronize()

# The stream that waits is the one that is current.
side = torch.cuda.Stream()
reducing = dist.all_reduce(x, async_op=True)  # (2)
with torch.cuda.stream(side):
    reducing.wait()
    on_side = x * 2
print(x.mean().item())  # error: [SS602] after (2)
torch.cuda.synchronize()
dist.destroy_process_group()
