"""Several uploads in one call: each is a copy that its stream does later."""

import torch

side = torch.cuda.Stream()
sources = [torch.ones(1000).pin_memory(), torch.ones(10).pin_memory()]
targets = [torch.zeros(1000, device="cuda"), torch.zeros(10, device="cuda")]
torch.cuda.synchronize()
with torch.cuda.stream(side):
    torch._foreach_copy_(targets, sources, non_blocking=True)  # (1)
targets[1] + 1  # error: [SS101] after (1)
sources[0].fill_(2)  # error: [SS302] after (1)
torch.cuda.synchronize()
