"""Kernels of Triton in the order of their streams, tuned ones and ones within registered operators."""

import torch
import triton
import triton.language as tl


@triton.jit
def put(out_ptr, value, mask):
    tl.store(out_ptr, value, mask=mask)


@triton.jit
def gather(
    x_ptr, index_ptr, out_ptr, total_ptr, unused_ptr, n, BLOCK: tl.constexpr, TOTAL: tl.constexpr = True
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x_ptr + tl.load(index_ptr + at, mask=mask), mask=mask)
    put(out_ptr + at, value, mask)
    if TOTAL:
        tl.atomic_add(total_ptr, tl.sum(value))


@torch.library.triton_op("streamsan_tests::gathered", mutates_args={})
def gathered(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    out, total = torch.empty_like(x), torch.zeros(1, device=x.device)
    torch.library.wrap_triton(gather)[(4,)](x, index, out, total, x, 1024, BLOCK=256)
    return out


x = torch.ones(1024, device="cuda")
index = torch.arange(1024, device="cuda")
out = torch.zeros(1024, device="cuda")
total = torch.zeros(1, device="cuda")
unused = torch.zeros(1024, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    gather[(4,)](x, index, out, total, unused, 1024, BLOCK=256)
# These the kernel does not change, and that one it does not touch.
squares = x * x + index
unused.add_(1)
torch.cuda.current_stream().wait_stream(side)
print((out + total).sum().item())
with torch.cuda.stream(side):
    # The total is not touched without the flag.
    gather[(4,)](x, index, out, total, unused, 1024, BLOCK=256, TOTAL=False)
total.zero_()
torch.cuda.current_stream().wait_stream(side)
result = gathered(x, index)
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    result = result + 1
torch.cuda.synchronize()
