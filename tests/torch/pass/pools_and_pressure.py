"""Private pools, an emptied cache and a retry after running out of memory: memory is handed on in other ways."""

import torch

side = torch.cuda.Stream()
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    kept = torch.ones(1 << 20, device="cuda")
for size in (1 << 20, 1 << 21, 1 << 20):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        tensor = torch.zeros(size, device="cuda") + kept.sum()
    torch.cuda.current_stream().wait_stream(side)
    total = tensor.sum()
    tensor.record_stream(torch.cuda.current_stream())
    del tensor
    torch.cuda.empty_cache()
total_memory = torch.cuda.mem_get_info()[1]
blocks = [torch.empty(total_memory // 8, dtype=torch.uint8, device="cuda") for _ in range(5)]
del blocks[:3]
# Fits only after the freed blocks have been given back to CUDA.
large = torch.empty(total_memory // 2, dtype=torch.uint8, device="cuda")
large[:16].fill_(1)
torch.cuda.synchronize()
