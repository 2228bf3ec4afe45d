"""The handler uses what the side stream has made so far; the wait at the end of the block was skipped."""

import torch

side = torch.cuda.Stream()
out = torch.zeros(256, device="cuda")
side.wait_stream(torch.cuda.current_stream())


def step(values):
    with torch.cuda.stream(side):
        out.add_(1)  # (1)
        if values > 1:
            raise ValueError("too many")
    torch.cuda.current_stream().wait_stream(side)


try:
    step(2)
except ValueError:
    partial = out.clone()  # error: [SS101] after (1)
torch.cuda.synchronize()
