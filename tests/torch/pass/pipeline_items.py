"""Pipelines over every sort of item, target and function give what a plain loop gives."""

import dataclasses

import torch

import streamsan

COUNT = 23
items = [torch.full((1000,), float(item)) for item in range(COUNT)]


def first(results):
    return [result[0].item() for result in results]


# In place, a new result, and the same buffer again and again.
assert first(streamsan.pipeline(lambda x: x.mul_(2).add_(1), items)) == [2.0 * i + 1 for i in range(COUNT)]
assert first(streamsan.pipeline(lambda x: x * 3, items)) == [3.0 * i for i in range(COUNT)]
kept = torch.empty(1000, device="cuda")
assert first(streamsan.pipeline(lambda x: torch.mul(x, 4, out=kept), items)) == [
    4.0 * i for i in range(COUNT)
]
# The items are as they were.
assert first(items) == [float(i) for i in range(COUNT)]


# Tuples, dicts, dataclasses, generators, and values that are no tensors.
@dataclasses.dataclass
class Sample:
    image: torch.Tensor
    label: int


def scaled(sample):
    return {"sum": sample.image.sum(), "label": sample.label, "views": (sample.image[:3], sample.image[3:])}


samples = (Sample(torch.full((6,), float(i)), i) for i in range(COUNT))
for index, result in enumerate(streamsan.pipeline(scaled, samples)):
    assert result["sum"].item() == 6.0 * index and result["label"] == index
    assert [len(view) for view in result["views"]] == [3, 3]
pairs = [(torch.full((2, 3), float(i)), torch.full((3,), i, dtype=torch.int64).t()) for i in range(COUNT)]
assert [r[0, 0].item() for r in streamsan.pipeline(lambda p: p[0] + p[1], pairs)] == [
    2.0 * i for i in range(COUNT)
]
loader = torch.utils.data.DataLoader(torch.arange(50.0), batch_size=8)
assert torch.cat(streamsan.pipeline(lambda x: x + 1, loader)).tolist() == [i + 1.0 for i in range(50)]

# Page-locked and pageable targets, and a function that takes the results in order.
for pin in (True, False):
    source = [item.pin_memory() if pin else item for item in items]
    out = [torch.empty(1000, pin_memory=pin) for _ in items]
    results = streamsan.pipeline(lambda x: x.neg_(), source, out=out, slots=3)
    assert first(out) == [-float(i) for i in range(COUNT)]
    assert all(result is target for result, target in zip(results, out, strict=True))
seen = []
streamsan.pipeline(lambda x: x + 1, items, out=lambda index, value: seen.append((index, value[0].item())))
assert seen == [(i, i + 1.0) for i in range(COUNT)]

# One stream and three.
for overlap in (True, False):
    many = [torch.full((64,), float(i)) for i in range(60)]
    assert first(streamsan.pipeline(lambda x: x * 5, many, overlap=overlap)) == [5.0 * i for i in range(60)]

# Few items, no items, one slot, gradients.
assert streamsan.pipeline(lambda x: x, []) == []
assert first(streamsan.pipeline(lambda x: x + 1, items[:1], slots=1)) == [1.0]
weight = torch.ones(1000, device="cuda", requires_grad=True)
total = streamsan.pipeline(lambda x: (x * weight).sum().backward(), items, grad=True)
assert total == [None] * COUNT
torch.cuda.synchronize()
assert weight.grad[0].item() == sum(range(COUNT))

statistics = streamsan.pipeline(lambda x: x, items, memory="1MiB").statistics
assert (statistics.items, statistics.slots, statistics.bytes_up) == (COUNT, 4, COUNT * 4000)
assert statistics.device_bytes == 4 * 2 * 4096, statistics
