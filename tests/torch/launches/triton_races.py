"""A kernel of Triton is an operation: what it reads and writes is read off its code."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)


x = torch.ones(1024, device="cuda")
out = torch.empty_like(x)
side = torch.cuda.Stream()
torch.cuda.synchronize()
scale[(4,)](x, out, 1024, 2.0, BLOCK=256)  # (1)
with torch.cuda.stream(side):
    doubled = x * 2
    total = out.sum()  # error: [SS101] after (1)
    x.add_(1)  # error: [SS102] after (1)
torch.cuda.synchronize()

with torch.cuda.stream(side):
    x.zero_()  # (2)
scale[(4,)](x_ptr=x, out_ptr=out, n=1024, factor=2.0, BLOCK=256)  # error: [SS101] after (2)
torch.cuda.synchronize()
