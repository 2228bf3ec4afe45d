"""What a function does to its input, or keeps of its result, does not reach another item."""

import torch

import streamsan

items = [torch.full((4,), float(item)) for item in range(12)]


def gradient(x):
    x.requires_grad_()
    with torch.enable_grad():
        (x * 2).sum().backward()
    return x.grad


assert [result[0].item() for result in streamsan.pipeline(gradient, items)] == [2.0] * 12
with torch.no_grad():
    assert [result[0].item() for result in streamsan.pipeline(gradient, items)] == [2.0] * 12
shapes = {tuple(result.shape) for result in streamsan.pipeline(lambda x: x.unsqueeze_(0) * 2, items)}
assert shapes == {(1, 4)}

weight = torch.ones(4, device="cuda", requires_grad=True)


def history(x):
    """How many operations autograd has on record for an input that was changed in place."""
    left, count = [x.mul_(weight).grad_fn], 0
    while left:
        count += 1
        left += [function for function, _ in left.pop().next_functions if function is not None]
    return torch.tensor(count)


assert len({result.item() for result in streamsan.pipeline(history, items, grad=True)}) == 1
parameters = [torch.nn.Parameter(item) for item in items]
seen = streamsan.pipeline(lambda x: torch.tensor(x.requires_grad), parameters)
assert not any(result.item() for result in seen)

calls = torch.zeros(1)


def counted(x):
    calls.add_(1)
    return x * 2, calls


results = streamsan.pipeline(counted, items, device="cuda")
assert [count.item() for _, count in results] == [item + 1.0 for item in range(12)]

# A size in bytes that is no multiple of 512.
growing = [torch.ones(10 * item + 1) for item in range(5)]
assert [len(result) for result in streamsan.pipeline(lambda x: x * 2, growing, item_bytes=164)] == [
    len(item) for item in growing
]

# A result that the function brings back itself, without a wait.
room = [torch.empty(4, pin_memory=True) for _ in items]
for out in (None, room):
    brought = streamsan.pipeline(lambda x: (x * 2).to("cpu", non_blocking=True), items, out=out)
    assert [result[0].item() for result in brought] == [2.0 * item for item in range(12)]


def made_on_the_device():
    """Items that are still on their way from the device when they are handed over."""
    rooms = [torch.empty(4, pin_memory=True) for _ in items]
    for item, room in enumerate(rooms):
        yield room.copy_(torch.full((4,), float(item), device="cuda"), non_blocking=True)


results = streamsan.pipeline(lambda x: x + 1, made_on_the_device(), overlap=True)
assert [result[0].item() for result in results] == [item + 1.0 for item in range(12)]
