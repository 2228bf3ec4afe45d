"""A buffer is refilled while another stream still reads it; the writes themselves are ordered."""

import torch

side = torch.cuda.Stream()
source = torch.ones(1024).pin_memory()
buffer = torch.zeros(1024, device="cuda")
for _ in range(2):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        total = buffer.sum()  # (1)
    buffer.copy_(source, non_blocking=True)  # error: [SS102] after (1)
torch.cuda.synchronize()
