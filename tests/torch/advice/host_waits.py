"""Waits of the host in each turn, and others that are not in each turn or leave a stream its work."""

import torch

side = torch.cuda.Stream()
x = torch.ones(1 << 10, device="cuda")
host = torch.ones(1 << 10).pin_memory()
torch.cuda.synchronize()

losses = []
for _ in range(6):
    x = x * 1.5
    loss = x.square().mean()
    losses.append(loss.item())  # advice: [SS702]

for _ in range(6):
    y = host.to("cuda")  # advice: [SS702]
    x = x + y

for _ in range(6):
    x = x * 0.5
    torch.cuda.synchronize()  # advice: [SS702]

for _ in range(6):
    x = x * 2
    if (x < 0).all():  # advice: [SS702]
        break


def epoch(value):
    for _ in range(5):
        uploaded = host.to("cuda", non_blocking=True)
        value = value * 0.5 + uploaded
    return value


# Once an epoch, though the loop over the batches is in a function of its own.
for _ in range(5):
    x = epoch(x)
    print(x.sum().item())

# Every third turn.
for step in range(12):
    x = x * 1.5
    y = x + 1
    if step % 3 == 2:
        print(x.sum().item())

# The other stream goes on.
side.wait_stream(torch.cuda.current_stream())
for _ in range(6):
    with torch.cuda.stream(side):
        busy = torch.ones(64, device="cuda")
        busy = busy * 2
    x = x * 2
    torch.cuda.current_stream().synchronize()

# A turn behind.
events = []
for _ in range(6):
    x = x * 2
    events.append(torch.cuda.current_stream().record_event())
    x = x + 1
    if len(events) > 1:
        events.pop(0).synchronize()
torch.cuda.synchronize()

# Only the other stream has to wait.
for _ in range(6):
    with torch.cuda.stream(side):
        uploaded = host.to("cuda", non_blocking=True)
    torch.cuda.synchronize()  # advice: [SS702]
    x = x + uploaded
    uploaded.record_stream(torch.cuda.current_stream())
