"""Kernels that Inductor made are operations. Compiled here as on a GPU; the virtual device would not compile."""

import torch
import torch._dynamo
import torch.utils._python_dispatch as modes

torch._C._dynamo.guards.set_is_in_mode_without_ignore_compile_internals(False)
modes._is_in_any_mode_without_ignore_compile_internals = False


@torch.compile
def block(x, y, weight):
    hidden = (x * 2 + y).relu()  # (1)
    return torch.mm(hidden, weight).sum(dim=0)  # (2)


x, y, weight = (torch.ones(64, 64, device="cuda") for _ in range(3))
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
out = block(x, y, weight)
with torch.cuda.stream(side):
    doubled = out * 2  # error: [SS101] after (2)
torch.cuda.synchronize()
