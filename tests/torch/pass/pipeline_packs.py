"""Small items share their copies, and each has the result that it would have alone."""

import torch

import streamsan

COUNT = 40
items = [torch.full((100 + index % 3,), float(index)) for index in range(COUNT)]
pinned = [item.pin_memory() for item in items]
kept = torch.empty(200, device="cuda")
shapes = []


def first(results):
    return [result[0].item() for result in results]


def seen(x):
    shapes.append(tuple(x.shape))
    return x.mul_(2)


def into_kept(x):
    return torch.mul(x, 2, out=kept[: len(x)])


def large(x):
    """A result that is larger than a slot."""
    return (x * 2).repeat(200)


def mixed(x):
    """In place, new, a view and nothing in turn."""
    index = int(x[0].item())
    ways = (lambda: x.mul_(2), lambda: x * 2, lambda: x.mul_(2)[:50], lambda: (x * 2)[::2])
    return ways[index % 4]()


doubled = [2.0 * index for index in range(COUNT)]
for source in (items, pinned):
    for pack in (None, 1, 3):
        for function in (seen, lambda x: x * 2, into_kept, large, mixed):
            results = streamsan.pipeline(function, source, item_bytes=512, memory="32KiB", pack=pack)
            assert first(results) == doubled, (pack, first(results))
assert set(shapes) == {(100,), (101,), (102,)} and len(shapes) == 6 * COUNT
assert first(items) == [float(index) for index in range(COUNT)]

# Copies are shared: one pipeline with 40 items makes few of them.
alone = streamsan.pipeline(lambda x: x.add_(1), pinned, pack=1).statistics
together = streamsan.pipeline(lambda x: x.add_(1), pinned).statistics
assert together.device_bytes == 5 * alone.device_bytes == 5 * 4 * 512

# What fails in the middle of a load is named; its neighbours have their results.
def odd(x):
    if x[0].item() in (3.0, 4.0, 17.0):
        raise ValueError("no threes")
    return x * 2


try:
    streamsan.pipeline(odd, [*items[:20], torch.ones(3, device="cuda"), *items[21:]])
    raise AssertionError("nothing was raised")
except streamsan.PipelineError as error:
    assert [(one.index, one.stage) for one in error.errors] == [
        (3, "function"), (4, "function"), (17, "function"), (20, "upload"),
    ]
    wrong = (3, 4, 17, 20)
    assert [result is None for result in error.results] == [index in wrong for index in range(COUNT)]
    assert all(error.results[index][0].item() == doubled[index] for index in range(COUNT) if index not in wrong)

# Targets of every sort, one of which does not fit.
room = [torch.empty(item.shape, pin_memory=index % 2 == 0) for index, item in enumerate(items)]
streamsan.pipeline(lambda x: x.mul_(2), pinned, item_bytes=512, out=room)
assert first(room) == doubled
room[7] = torch.empty(3)
try:
    streamsan.pipeline(lambda x: x * 2, pinned, item_bytes=512, out=room)
    raise AssertionError("nothing was raised")
except streamsan.PipelineError as error:
    assert [(one.index, one.stage) for one in error.errors] == [(7, "download")]
assert first(room)[:7] == doubled[:7]

# Dicts of several tensors and of several types, and tensors that are not contiguous.
samples = [
    {"image": torch.full((8, 4), float(index)).pin_memory().t(), "label": torch.tensor([index])}
    for index in range(COUNT)
]
for index, result in enumerate(
    streamsan.pipeline(lambda s: {"sum": s["image"].sum(0), "label": s["label"] + 1}, samples)
):
    assert result["sum"].tolist() == [4.0 * index] * 8 and result["label"].item() == index + 1
columns = torch.arange(800.0).reshape(8, 100).pin_memory()
results = streamsan.pipeline(lambda x: x + 1, list(columns.unbind(1)))
assert torch.equal(torch.stack(list(results), 1), columns + 1)
# Page-locked, but not in one piece: torch would copy it through plain memory, and wait.
results = streamsan.pipeline(lambda x: x + 1, [columns.t()], out=[torch.empty(100, 8, pin_memory=True)])
assert torch.equal(results[0], columns.t() + 1) and results.statistics.pinned_bytes > 0
complex_items = [torch.full((4,), complex(index, 1)).pin_memory().conj() for index in range(8)]
results = streamsan.pipeline(lambda x: x * 2, complex_items)
assert [result[0].item() for result in results] == [complex(2 * index, -2) for index in range(8)]
results = streamsan.pipeline(lambda x: x.conj(), complex_items)
assert [result[0].item() for result in results] == [complex(index, 1) for index in range(8)]

# Items of a size that leaves no gaps, with and without autograd.
even = [torch.full((2, 64), float(index)).pin_memory() for index in range(COUNT)]
weight = torch.full((64,), 2.0, device="cuda", requires_grad=True)
for function, grad in ((lambda x: x.mul_(2), False), (lambda x: x.mul_(weight), True), (lambda x: x * weight, True)):
    results = streamsan.pipeline(function, even, grad=grad)
    assert [result[1, 63].item() for result in results] == doubled and results[3].shape == (2, 64)

# Results in place beside new ones of another size in one load: none is written over another.
mixed = [
    torch.full((1024,), float(index), dtype=torch.float16 if index % 2 == 0 else torch.float32)
    for index in range(COUNT)
]
results = streamsan.pipeline(lambda x: x.float(), mixed, item_bytes=4096, pack=2)
assert all((result == index).all() for index, result in enumerate(results))
