"""Batches that are uploaded ahead of the program's own loop, training included."""

import torch

import streamsan

batches = [torch.full((64,), float(index)) for index in range(11)]
for pin in (True, False):
    source = [batch.pin_memory() if pin else batch for batch in batches]
    for slots in (2, 3, 5):
        sums = [batch.sum() for batch in streamsan.prefetch(source, slots=slots)]
        assert [total.item() for total in sums] == [64.0 * index for index in range(11)], (pin, slots)
# A staging buffer is not filled again before its upload was submitted: once it was, now and then.
for _ in range(20):
    many = [torch.full((64,), float(index)) for index in range(40)]
    for slots in (2, 3, 5):
        sums = [batch.sum() for batch in streamsan.prefetch(many, slots=slots)]
        assert [total.item() for total in sums] == [64.0 * index for index in range(40)], slots
assert list(streamsan.prefetch([])) == []
assert [batch.item() for batch in streamsan.prefetch([torch.tensor(5.0)])] == [5.0]

# Dicts, batches that are changed in place, and the device memory of three of them.
loader = torch.utils.data.DataLoader(
    [{"x": torch.full((8,), float(index)), "y": index} for index in range(32)], batch_size=4
)
before = torch.cuda.memory_allocated()
torch.cuda.reset_peak_memory_stats()
seen = []
for batch in streamsan.prefetch(loader):
    seen.append((batch["x"].add_(1).sum() + batch["y"].sum()).to("cpu", non_blocking=True))
torch.cuda.synchronize()
assert [total.item() for total in seen] == [
    sum(8 * (index + 1) + index for index in range(first, first + 4)) for first in range(0, 32, 4)
]
assert torch.cuda.max_memory_allocated() - before < 3 * 1024 + 8192
del batch, seen
assert torch.cuda.memory_allocated() == before

# A training loop gives what a plain one gives; the program works on a stream of its own.
def trained(give):
    torch.manual_seed(0)
    model = torch.nn.Linear(16, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(1)
    data = [torch.randn(8, 16, generator=generator) for _ in range(9)]
    for x in give(data):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return torch.cat([parameter.detach().flatten().cpu() for parameter in model.parameters()])


plain = trained(lambda data: (x.cuda() for x in data))
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    assert torch.equal(trained(streamsan.prefetch), plain)
torch.cuda.current_stream().wait_stream(stream)

# A loop that stops early, a source that fails, and a batch that is too large.
for batch in streamsan.prefetch(batches):
    if batch[0].item() == 3.0:
        break


def source():
    yield batches[0]
    raise OSError("the disk is gone")


given = []
for failing, said in ((source(), "the disk is gone"), ([batches[0], torch.ones(999)], "item_bytes=")):
    try:
        for batch in streamsan.prefetch(failing):
            given.append(batch[0].item())
        raise AssertionError(said)
    except (OSError, ValueError) as error:
        assert said in str(error), error
assert given == [0.0, 0.0]
try:
    streamsan.prefetch(batches, slots=1)
    raise AssertionError("one slot")
except ValueError as error:
    assert "nothing can be uploaded ahead" in str(error)
