"""Kernels that Inductor made are operations, on the first line of the function.

Compiled here as on a GPU: on the virtual device nothing would be.
"""

import torch

from streamsan.torch.compiler import let_it_compile
from streamsan.torch.mode import StreamMode

StreamMode.ignore_compile_internals = classmethod(lambda mode: True)
let_it_compile()


@torch.compile  # (1)
def block(x, y, weight):
    hidden = (x * 2 + y).relu()
    return torch.mm(hidden, weight).sum(dim=0)


x, y, weight = (torch.ones(64, 64, device="cuda") for _ in range(3))
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
out = block(x, y, weight)
with torch.cuda.stream(side):
    doubled = out * 2  # error: [SS101] after (1)
torch.cuda.synchronize()
