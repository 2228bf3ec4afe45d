"""Items larger than a slot are cut along their rows, and their results joined."""

import torch

import streamsan

items = [torch.arange(1000.0 * (index + 1)).reshape(-1, 10) + index for index in range(5)]
seen = []


def function(x):
    seen.append(len(x))
    return {"twice": x * 2, "sum": x.sum(1)}


def check(results):
    for item, result in zip(items, results, strict=True):
        assert torch.equal(result["twice"], item * 2) and torch.equal(result["sum"], item.sum(1))


# Without cutting, one item is larger than the memory.
try:
    streamsan.pipeline(function, items, memory=8192)
    raise AssertionError("nothing was raised")
except streamsan.PipelineError as error:
    assert "chunk=True" in str(error), error
seen.clear()
results = streamsan.pipeline(function, items, memory=8192, chunk=True)
check(results)
assert results.statistics.device_bytes <= 8192 and results.statistics.items == 5
assert max(seen) * 40 <= 2048 and sum(seen) == sum(len(item) for item in items)

# In place, pinned, several tensors an item, into targets of the caller's, one after the other.
for pin in (True, False):
    source = [item.pin_memory() if pin else item for item in items]
    out = [torch.empty(item.shape, pin_memory=pin) for item in items]
    results = streamsan.pipeline(lambda x: x.mul_(3), source, memory=8192, chunk=True, out=out, slots=2)
    assert all(torch.equal(target, item * 3) for item, target in zip(items, out, strict=True))
    assert all(result is target for result, target in zip(results, out, strict=True))
pairs = [(item, torch.arange(len(item))) for item in items]
results = streamsan.pipeline(lambda p: p[0] + p[1].unsqueeze(1), pairs, item_bytes=4096, chunk=True)
assert all(torch.equal(r, a + b.unsqueeze(1)) for r, (a, b) in zip(results, pairs, strict=True))
taken = []
streamsan.pipeline(
    lambda x: x + 1, iter(items), memory=8192, chunk=True, out=lambda index, value: taken.append((index, value))
)
assert [index for index, _ in taken] == list(range(5))
assert all(torch.equal(value, items[index] + 1) for index, value in taken)

# Items that fit are not cut, whatever the function returns for them.
results = streamsan.pipeline(lambda x: x.sum(), items[:1], chunk=True)
assert results[0].item() == items[0].sum().item()


def failure(function, source, **options):
    try:
        streamsan.pipeline(function, source, chunk=True, **options)
    except streamsan.PipelineError as error:
        return error
    raise AssertionError("nothing was raised")


error = failure(lambda x: x.sum(), items, memory=8192)
assert [one.index for one in error.errors] == list(range(5)) and "one row for each row it gets" in str(error)


def unlucky(x):
    if (x == 1500.0 + 2).any():
        raise ValueError("unlucky")
    return x + 1


error = failure(unlucky, items, memory=8192)
assert [one.index for one in error.errors] == [i for i, item in enumerate(items) if (item == 1502.0).any()]
for index, (item, result) in enumerate(zip(items, error.results, strict=True)):
    assert (result is None) == (item == 1502.0).any().item(), index
    assert result is None or torch.equal(result, item + 1)
wide = [torch.ones(2, 4000), items[0], (torch.ones(500, 9), torch.ones(400)), torch.ones(())]
error = failure(lambda x: x, wide, item_bytes=4096)
assert [one.index for one in error.errors] == [0, 2]
assert "one row of the item has 16000 bytes, a slot 4096" in str(error) and "in common" in str(error)


def source():
    yield items[0]
    raise OSError("the disk is gone")


error = failure(lambda x: x + 1, source(), memory=8192)
assert [str(one) for one in error.errors] == ["item 1: source: OSError: the disk is gone"]
assert torch.equal(error.results[0], items[0] + 1)
