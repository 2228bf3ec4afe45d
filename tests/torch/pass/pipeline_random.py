"""Pipelines made at random give what a plain loop gives, failures included."""

import random

import torch

import streamsan

buffer = torch.empty(1 << 12, device="cuda")


def into_buffer(x):
    return torch.mul(x, 2, out=buffer[: x.numel()].view(x.shape))


def unlucky(x):
    if x.flatten()[0].item() % 5 == 3:
        raise ValueError("unlucky")
    return x.add_(1)


FUNCTIONS = {
    "in place": lambda x: x.mul_(2).add_(1),
    "new": lambda x: x * 2 + 1,
    "buffer": into_buffer,
    "larger": lambda x: torch.cat([x, x, x], 1),
    "view": lambda x: x.mul_(3)[:, 1:],
    "transposed": lambda x: (x + 1).t(),
    "several": lambda x: {"sum": x.sum(1), "same": x, "size": x.shape[0]},
    "on the host": lambda x: (x * 2).cpu(),
    "unlucky": unlucky,
}
ROW_BY_ROW = ("in place", "new", "buffer", "larger", "view")


def source(chance, rows, pinned, transposed):
    item = torch.full((rows, 6), float(chance.randrange(50)))
    item[:, 1] = torch.arange(float(rows))
    if transposed:
        item = item.t().contiguous().t()
    return item.pin_memory() if pinned else item


def plain(function, item):
    """What the function gives for one item alone, or that it fails."""
    try:
        result = function(item.cuda())
    except ValueError:
        return None
    return result.cpu() if isinstance(result, torch.Tensor) else result


def equal(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other.cpu())
    return one == other


for seed in range(40):
    chance = random.Random(seed)
    name = chance.choice(sorted(FUNCTIONS))
    chunk = name in ROW_BY_ROW and chance.random() < 0.4
    most = chance.choice((3, 40, 150))
    items = [
        source(chance, chance.randrange(1, most), chance.random() < 0.6, chance.random() < 0.2)
        for _ in range(chance.randrange(1, 30))
    ]
    if chance.random() < 0.3:
        items = [items[0]] * len(items)
    expected = [plain(FUNCTIONS[name], item) for item in items]
    largest = max(item.nbytes for item in items)
    options = {
        "chunk": chunk,
        "item_bytes": chance.choice((512, 1024)) if chunk else chance.choice((largest, 4 * largest)),
        "slots": chance.choice((None, 1, 2, 3)),
        "pack": chance.choice((None, 1, 2, 7)),
        "overlap": chance.random() < 0.8,
        "register": chance.random() < 0.2,
    }
    fits = [result for result in expected if isinstance(result, torch.Tensor)]
    if len(fits) == len(items) and chance.random() < 0.5:
        pin = chance.random() < 0.5
        options["out"] = [torch.empty(result.shape, pin_memory=pin) for result in fits]
    try:
        results = streamsan.pipeline(FUNCTIONS[name], items, **options)
        failed = []
    except streamsan.PipelineError as error:
        results, failed = error.results, [one.index for one in error.errors]
        error = None
    assert failed == [index for index, result in enumerate(expected) if result is None], (seed, name, options)
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        assert wanted is None or equal(result, wanted), (seed, name, options, index)
