"""What fails in a pipeline is named, and loses nothing else."""

import gc

import torch

import streamsan

items = [torch.full((100,), float(item)) for item in range(12)]


def failure(function, source, **options):
    try:
        streamsan.pipeline(function, source, **options)
    except streamsan.PipelineError as error:
        return error
    raise AssertionError("nothing was raised")


def odd(x):
    doubled = x * 2
    if x[0].item() in (3.0, 8.0):
        raise ValueError("no threes")
    return doubled


error = failure(odd, items)
assert [one.index for one in error.errors] == [3, 8] and error.errors[0].stage == "function"
assert str(error).startswith("2 of 12 items failed: item 3: function: ValueError: no threes; item 8")
assert isinstance(error.__cause__, ValueError) and error.__cause__.__traceback__ is not None
values = [result if result is None else result[0].item() for result in error.results]
assert values == [None if i in (3, 8) else 2.0 * i for i in range(12)]


def source():
    yield from items[:5]
    raise OSError("the disk is gone")


error = failure(lambda x: x + 1, source())
assert [str(one) for one in error.errors] == ["item 5: source: OSError: the disk is gone"]
assert [result[0].item() for result in error.results[:5]] == [1.0, 2.0, 3.0, 4.0, 5.0]

mixed = [items[0], torch.ones(3, device="cuda"), torch.ones(9999), torch.ones(3).to_sparse(), items[4]]
error = failure(lambda x: x + 1, mixed)
assert [one.index for one in error.errors] == [1, 2, 3]
assert "is on cuda:0" in str(error.errors[0]) and "item_bytes=" in str(error.errors[1])
assert "sparse" in str(error.errors[2]) and error.results[4][0].item() == 5.0

assert "holds no tensor" in str(failure(lambda x: x, [items[0], 3]).errors[0])
try:
    streamsan.pipeline(items, lambda x: x)
    raise AssertionError("swapped")
except TypeError as error:
    assert "is its function, not list" in str(error), error

taken = []


def refusing(index, value):
    taken.append(index)
    if index == 2:
        raise KeyError("full")


error = failure(lambda x: x, items, out=refusing)
assert taken == list(range(12)) and error.errors[0].stage == "out"
wrong = [torch.empty(99) for _ in items]
assert "`out` has room for" in str(failure(lambda x: x, items, out=wrong).errors[0])
assert "the budget is 100: raise" in str(failure(lambda x: x, items, memory=100))
assert "5 slots of 512 bytes" in str(failure(lambda x: x, items, memory=2048, slots=5))

for options, said in (
    ({"memory": "lots"}, "is no size"),
    ({"slots": 0}, "at least one slot"),
    ({"pack": 0}, "at least one item"),
    ({"device": "cpu"}, "needs a CUDA device"),
    ({"out": [torch.empty(1)]}, "1 places for 12 items"),
):
    try:
        streamsan.pipeline(lambda x: x, items, **options)
        raise AssertionError(options)
    except ValueError as error:
        assert said in str(error), error


def interrupted(x):
    if x[0].item() == 4.0:
        raise KeyboardInterrupt
    return x + 1


try:
    streamsan.pipeline(interrupted, items)
    raise AssertionError("went on")
except KeyboardInterrupt:
    pass

# Device memory runs out in the function: that item fails, the next ones do not.
total = torch.cuda.get_device_properties(0).total_memory
error = failure(lambda x: torch.empty(2 * total, dtype=torch.uint8, device="cuda") if x[0] == 6 else x, items)
assert [one.index for one in error.errors] == [6] and isinstance(
    error.errors[0].error, torch.OutOfMemoryError
)
assert error.results[7][0].item() == 7.0

# Memory comes back when the call ends, without a garbage collector, also if somebody keeps the errors.
gc.disable()
before = torch.cuda.memory_allocated()
streamsan.pipeline(lambda x: x + 1, items)
assert torch.cuda.memory_allocated() == before


def strict(x):
    del x
    raise ValueError("no")


error = failure(strict, items)
assert torch.cuda.memory_allocated() == before
del error
