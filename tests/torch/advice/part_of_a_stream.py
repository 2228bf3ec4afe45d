"""Waits for all of a stream where the middle of it matters, and where the end does."""

import torch

side = torch.cuda.Stream()
main = torch.cuda.default_stream()
buffer = torch.zeros(1 << 16, device="cuda")
other = torch.zeros(1 << 16, device="cuda")
batches = [torch.ones(1 << 16).pin_memory() for _ in range(5)]
hidden = torch.zeros(1 << 16, device="cuda")
torch.cuda.synchronize()

for batch in batches:
    side.wait_stream(main)  # advice: [SS704]
    with torch.cuda.stream(side):
        buffer.copy_(batch, non_blocking=True)
    main.wait_stream(side)
    x = buffer * 2
    for _ in range(4):
        hidden = torch.tanh(hidden + x)

# The last operation is the one that matters.
for batch in batches:
    side.wait_stream(main)
    with torch.cuda.stream(side):
        other.copy_(batch, non_blocking=True)
    main.wait_stream(side)
    for _ in range(4):
        hidden = torch.tanh(hidden)
    hidden += other

# An event in the middle.
read = main.record_event()
for batch in batches:
    side.wait_event(read)
    with torch.cuda.stream(side):
        buffer.copy_(batch, non_blocking=True)
    main.wait_stream(side)
    x = buffer * 2
    read = main.record_event()
    for _ in range(4):
        hidden = torch.tanh(hidden + x)
torch.cuda.synchronize()
