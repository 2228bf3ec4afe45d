"""A pool of its own: its blocks are handed on as those of the others are."""

import torch

pool = torch.cuda.MemPool()
side = torch.cuda.Stream()
with torch.cuda.use_mem_pool(pool):
    x = torch.ones(1 << 18, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = x.sum()
torch.cuda.current_stream().wait_stream(side)
del x
with torch.cuda.use_mem_pool(pool):
    z = torch.zeros(1 << 18, device="cuda")
torch.cuda.synchronize()
