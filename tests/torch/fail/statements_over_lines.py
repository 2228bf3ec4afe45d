"""Reads that come too early, within statements of several lines: no code can be put before their own lines."""

import torch

side = torch.cuda.Stream()
parts = [torch.zeros(64, device="cuda") for _ in range(9)]
one = torch.ones(64, device="cuda")
torch.cuda.synchronize()


def write(part):
    with torch.cuda.stream(side):
        part.add_(1)  # (1)


def metrics(part):
    return {
        "name": "loss",
        "mean": part.mean(),  # error: [SS101] after (1)
    }


for part in parts:
    write(part)
torch.add(
    one,
    parts[0].mul(2),  # error: [SS101] after (1)
)
write(parts[1])
chain = (
    parts[1]
    .view(-1)
    .mul(2)  # error: [SS101] after (1)
    .sum()
)
write(parts[2])
metrics(parts[2])
write(parts[3])
if one is None:
    total = one
elif (total := parts[3].sum()) is not None:  # error: [SS101] after (1)
    total += 1
write(parts[4])
callbacks = [
    lambda part: part.neg(),  # error: [SS101] after (1)
]
callbacks[0](parts[4])
for part in parts[5:7]:
    write(part)
totals = [
    part.sum()  # error: [SS101] after (1)
    for part in parts[5:7]
]
write(parts[7])
if len(totals) < 3: totals.append(parts[7].sum())  # noqa: E701  # error: [SS101] after (1)
write(parts[8])
turns = 0
while turns < 1 and \
        parts[8].sum() is not None:  # error: [SS101] after (1)
    turns += 1
torch.cuda.synchronize()
