"""Memory that `record_stream` holds while the host runs ahead, with the host kept back, and without it."""

import torch

side = torch.cuda.Stream()
main = torch.cuda.default_stream()
total = torch.zeros((), device="cuda")
side.wait_stream(main)
for _ in range(8):
    x = torch.ones(1 << 20, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        total += x.sum()
    x.record_stream(side)  # advice: [SS706]
    del x
torch.cuda.synchronize()

# Two turns ahead at most.
turns = []
for _ in range(8):
    x = torch.ones(1 << 19, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        total += x.sum()
    x.record_stream(side)
    del x
    turns.append(side.record_event())
    if len(turns) > 2:
        turns.pop(0).synchronize()
torch.cuda.synchronize()

# The owner waits.
for _ in range(8):
    x = torch.ones(1 << 20, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        total += x.sum()
    main.wait_stream(side)
    del x
torch.cuda.synchronize()
