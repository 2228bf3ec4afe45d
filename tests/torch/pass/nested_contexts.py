"""Nested stream contexts, `stream(None)`, a return and an exception inside of them: each leaves the right stream."""
import torch

one, two = torch.cuda.Stream(), torch.cuda.Stream()
x = torch.zeros(256, device="cuda")
torch.cuda.synchronize()


def inner():
    with torch.cuda.stream(two):
        return torch.cuda.current_stream()


with torch.cuda.stream(one):
    assert inner() == two
    x.add_(1)
    with torch.cuda.stream(None):
        x.add_(1)
    try:
        with torch.cuda.stream(two):
            two.wait_stream(one)
            x.add_(1)
            raise ValueError
    except ValueError:
        one.wait_stream(two)
    x.add_(1)
torch.cuda.current_stream().wait_stream(one)
x.add_(1)
print(x[0].item())
