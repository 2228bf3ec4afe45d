"""The shape of torchrec #4231: weights are stashed on a side stream and their storage is resized to nothing."""

import torch

stash = torch.cuda.Stream()
host = torch.zeros(1 << 18).pin_memory()
weights = torch.full((1 << 18,), 3.0, device="cuda")
torch.cuda.synchronize()
stash.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stash):
    host.copy_(weights, non_blocking=True)  # (1)
weights.untyped_storage().resize_(0)
activations = torch.full((1 << 18,), -1.0, device="cuda")  # error: [SS202] after (1)
torch.cuda.synchronize()
