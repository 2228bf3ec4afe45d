"""Memory that goes while a stream that was waited for has read it: to the driver, by `set_`, as a raw allocation."""

import torch

side = torch.cuda.Stream()
result = torch.zeros((), device="cuda")
for _ in range(2):
    x = torch.ones(1 << 20, device="cuda")
    weight = torch.ones(1 << 20, device="cuda")
    pointer = torch.cuda.caching_allocator_alloc(4096)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        result.add_(x.sum() + weight.sum())
    torch.cuda.current_stream().wait_stream(side)
    del x
    torch.cuda.empty_cache()
    weight.set_(torch.zeros(1 << 20, device="cuda"))
    torch.cuda.caching_allocator_delete(pointer)
    y = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()
assert result.item() == 4 << 20
