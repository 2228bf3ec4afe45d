"""Rows of one cache that an index chooses, and other rows of it on another stream."""

#@ virtual: on a GPU the values of an index are not known, so the whole cache counts
import torch

cache = torch.zeros(64, 32, device="cuda")
host = torch.zeros(4, 32, pin_memory=True)
slots = torch.tensor([8, 9, 61, 12], device="cuda")
new = torch.ones(4, 32, device="cuda")
mask = torch.arange(64, device="cuda") > 40
offsets = torch.tensor([0, 5, 6, 31], device="cuda")
swap = torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(swap):
    host.copy_(cache[0:4], non_blocking=True)
    cache[4:8].zero_()
cache.index_copy_(0, slots, new)
cache[slots - 64] = new * 2
cache[slots, offsets] = 5.0
cache.index_add_(0, slots, new)
cache.index_fill_(0, slots, 3.0)
cache[mask] = torch.ones(int(mask.sum()), 32, device="cuda")
read = cache[slots], cache.index_select(0, slots), torch.nn.functional.embedding(slots, cache)
columns = torch.tensor([1, 3], device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(swap):
    cache[:, 0].neg_()
cache.index_copy_(1, columns, torch.ones(64, 2, device="cuda"))
torch.cuda.synchronize()
