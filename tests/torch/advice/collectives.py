"""Waits for collectives are left alone: which stream they share is NCCL's choice, and `wait()` raises what went wrong."""

import torch
import torch.distributed as dist

device = torch.device("cuda", 0)
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1, device_id=device)
side = torch.cuda.Stream()
main = torch.cuda.current_stream()
a, b, out = (torch.ones(64, device=device) for _ in range(3))
for _ in range(4):
    first = dist.all_reduce(a, async_op=True)
    gathered = dist.all_gather([out], a, async_op=True)
    second = dist.all_reduce(b, async_op=True)
    second.wait()
    b.add_(1)
    gathered.wait()
    first.wait()
    a.add_(1)
    # On the current stream: torch waits there for what was recorded there.
    dist.all_reduce(a)
    side.wait_stream(main)
    side.wait_stream(main)  # advice: [SS703]
    with torch.cuda.stream(side):
        a.mul_(1)
    main.wait_stream(side)
for turn in range(4):
    # The helper that calls `record_stream` uses the stream in some turns only.
    x = torch.ones(64, device=device)
    side.wait_stream(main)
    if turn == 2:
        with torch.cuda.stream(side):
            y = x * 2
    x.record_stream(side)
    main.wait_stream(side)
    del x
torch.cuda.synchronize()
dist.destroy_process_group()
