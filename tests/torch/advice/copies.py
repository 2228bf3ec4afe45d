"""Copies from and to ordinary memory, and page-locking, in loops; and the same done well, or once."""

import torch

batches = [torch.ones(1 << 16) for _ in range(5)]
weights = [torch.ones(1 << 16, device="cuda") for _ in range(2)]
uploaded = [torch.ones(1 << 16).cuda() for _ in range(5)]
total = torch.zeros((), device="cuda")

for batch in batches:
    x = batch.to("cuda", non_blocking=True)  # advice: [SS701]
    total += x.sum()

results = []
for _ in range(5):
    y = x * 2
    results.append(y.to("cpu"))  # advice: [SS701]

for batch in batches:
    pinned = batch.pin_memory()  # advice: [SS705]
    x = pinned.to("cuda", non_blocking=True)
    total += x.sum()

# Page-locked once.
slots = [torch.empty(1 << 16, pin_memory=True) for _ in range(2)]
done = [torch.cuda.Event() for _ in range(2)]
for turn, batch in enumerate(batches):
    slot = turn % 2
    done[slot].synchronize()
    slots[slot].copy_(batch)
    x = slots[slot].to("cuda", non_blocking=True)
    done[slot].record()
    total += x.sum()

# Small ones are cheap.
for _ in range(5):
    small = torch.ones(16).to("cuda", non_blocking=True)
    total += small.sum()

torch.cuda.synchronize()
