"""Rows of one cache that an index chooses, one of which another stream copies; and writes of the whole cache."""

import torch

cache = torch.zeros(64, 32, device="cuda")
host = torch.zeros(4, 32, pin_memory=True)
slots = torch.tensor([8, 3, 12], device="cuda")
new = torch.ones(3, 32, device="cuda")
swap = torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(swap):
    host.copy_(cache[0:4], non_blocking=True)  # (1)
cache.index_copy_(0, slots, new)  # error: [SS102] after (1)
torch.cuda.synchronize()
with torch.cuda.stream(swap):
    cache[62].fill_(7)  # (2)
chosen = cache[torch.tensor([5, -2], device="cuda")]  # error: [SS101] after (2)
torch.cuda.synchronize()
# One value through a mask: the kernel writes back what it does not change.
mask = torch.arange(64, device="cuda") > 40
torch.cuda.synchronize()
with torch.cuda.stream(swap):
    cache[4:8].fill_(3)  # (3)
cache[mask] = 1.0  # error: [SS101] after (3)
torch.cuda.synchronize()
# Into a transposed view by way of a copy.
columns = torch.tensor([1, 3, 1], device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(swap):
    cache[:, 0].fill_(3)  # (4)
cache.t().index_put_((columns,), torch.ones(3, 64, device="cuda"), accumulate=True)  # error: [SS101] after (4)
torch.cuda.synchronize()
