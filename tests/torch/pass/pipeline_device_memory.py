"""Device memory that runs out in the middle: slots are given back, and no item is lost."""

import torch

import streamsan

MIB = 1 << 20
total = torch.cuda.get_device_properties(0).total_memory
items = [torch.full((3 * MIB,), float(index)).pin_memory() for index in range(9)]
calls = []


def hungry(x):
    """Changes its input before it needs more memory than there is beside four slots."""
    calls.append(1)
    x.add_(1)
    return x + torch.empty(11 * MIB, device="cuda").fill_(1)[:1]


torch.cuda.set_per_process_memory_fraction(96 * MIB / total)
try:
    results = streamsan.pipeline(hungry, items, slots=4, pack=1)
    assert [result[0].item() for result in results] == [index + 2.0 for index in range(9)]
    assert results.statistics.slots < 4 and len(calls) > len(items), results.statistics
    # Slots that do not fit to begin with.
    results = streamsan.pipeline(lambda x: x.add_(1), items, item_bytes=40 * MIB, memory=160 * MIB, pack=1)
    assert [result[0].item() for result in results] == [index + 1.0 for index in range(9)]
    assert results.statistics.slots == 1
    try:
        streamsan.pipeline(lambda x: x, items, item_bytes=40 * MIB, slots=4)
        raise AssertionError("nothing was raised")
    except streamsan.PipelineError as error:
        assert "4 slots of 41943040 bytes could not be allocated, 2 could" in str(error), error
    # A function that no number of slots helps fails, for itself.
    try:
        streamsan.pipeline(
            lambda x: torch.empty(30 * MIB, device="cuda") if x[0] == 3 else x + 1, items, slots=3, pack=1
        )
        raise AssertionError("nothing was raised")
    except streamsan.PipelineError as error:
        assert [(one.index, one.stage) for one in error.errors] == [(3, "function")]
        assert isinstance(error.errors[0].error, torch.OutOfMemoryError)
        assert [result is None for result in error.results] == [index == 3 for index in range(9)]
finally:
    torch.cuda.set_per_process_memory_fraction(1.0)
