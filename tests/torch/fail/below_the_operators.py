"""Memory used below torch's operators: a copy of storages, an array interface, a raw allocation."""

import torch


class Array:
    def __init__(self, pointer, count):
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "<f4",
            "data": (pointer, False),
            "version": 2,
        }


side = torch.cuda.Stream()
source = torch.arange(4096.0, device="cuda")
target = torch.zeros(4096, device="cuda")
result = torch.zeros((), device="cuda")
pointer = torch.cuda.caching_allocator_alloc(4096 * 4)
raw = torch.as_tensor(Array(pointer, 4096), device="cuda")
raw.fill_(1)
torch.cuda.synchronize()
with torch.cuda.stream(side):
    target.untyped_storage().copy_(source.untyped_storage(), non_blocking=True)  # (1)
total = target.sum()  # error: [SS101] after (1)
torch.cuda.synchronize()
alias = torch.as_tensor(Array(source.data_ptr(), 4096), device="cuda")
with torch.cuda.stream(side):
    alias.add_(1)  # (2)
total = source.sum()  # error: [SS101] after (2)
torch.cuda.synchronize()
with torch.cuda.stream(side):
    torch.sum(raw, 0, out=result)  # (3)
torch.cuda.caching_allocator_delete(pointer)
reused = torch.full((4096,), 5.0, device="cuda")  # error: [SS202] after (3)
torch.cuda.synchronize()
