"""Pageable memory that is page-locked where it is, for a call or for a block."""

import torch

import streamsan

store = torch.arange(float(1 << 20)).reshape(8, -1)
out = torch.empty_like(store)
targets = list(out)
results = streamsan.pipeline(lambda x: x.mul_(2), list(store) * 2, out=targets * 2, register=True)
assert torch.equal(out, store * 2) and not store.is_pinned() and not out.is_pinned()
assert results.statistics.pinned_bytes == store.nbytes + out.nbytes, results.statistics

with streamsan.page_lock(store, {"to": targets}):
    assert store.is_pinned() and out.is_pinned()
    for factor in (3, 4):
        results = streamsan.pipeline(lambda x, factor=factor: x.mul_(factor), list(store), out=targets)
        assert torch.equal(out, store * factor) and results.statistics.pinned_bytes == 0
assert not store.is_pinned() and not out.is_pinned()

# Small memory is staged as ever.
items = [torch.full((100,), float(index)) for index in range(9)]
results = streamsan.pipeline(lambda x: x + 1, items, register=True)
assert [result[0].item() for result in results] == [index + 1.0 for index in range(9)]
try:
    with streamsan.page_lock(store, items):
        raise AssertionError("locked")
except streamsan.StreamsanError as error:
    assert "tensor 1 (torch.float32 [100] on cpu) cannot be page-locked" in str(error)
assert not store.is_pinned()


# Whatever fails, the memory is unlocked.
def failing(x):
    raise ValueError("no")


try:
    streamsan.pipeline(failing, list(store), register=True)
    raise AssertionError("nothing was raised")
except streamsan.PipelineError as error:
    assert len(error.errors) == 8
assert not store.is_pinned()


def interrupted(x):
    raise KeyboardInterrupt


try:
    streamsan.pipeline(interrupted, list(store), register=True)
    raise AssertionError("went on")
except KeyboardInterrupt:
    assert not store.is_pinned()

# Memory that the system does not lock is staged, and its refusal does not show anywhere else.
runtime = torch.cuda.cudart()
shared = torch.ones(1 << 19)
assert int(runtime.cudaHostRegister(shared.data_ptr(), 1 << 20, 0)) == 0
halves = [shared[: 1 << 18], shared[1 << 18 :]]
results = streamsan.pipeline(lambda x: x + 1, halves, register=True)
assert [result[0].item() for result in results] == [2.0, 2.0]
runtime.cudaHostUnregister(shared.data_ptr())
(torch.ones(3, device="cuda") + 1).sum().item()
