"""torch hands page-locked memory out again only after its copies: no wait of the program is needed."""

import torch

x = torch.zeros(8, 1024, device="cuda")
side = torch.cuda.Stream()

for step in range(8):
    stage = torch.empty(1024, pin_memory=True)
    stage.fill_(step)
    x[step].copy_(stage, non_blocking=True)
    del stage

for step in range(8):
    stage = torch.full((1024,), float(step), pin_memory=True)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x[step].copy_(stage, non_blocking=True)
    del stage
    stage = torch.ones(1024).pin_memory()
    stage.add_(1)
    del stage
torch.cuda.current_stream().wait_stream(side)

for step in range(4):
    result = x[step].to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    assert result[0].item() == step
    del result
    scratch = torch.zeros(1024, pin_memory=True)
    scratch.mul_(2)
    x.sum().item()
    del scratch

last = torch.ones(1024, pin_memory=True)
x[0].copy_(last, non_blocking=True)
del last
torch._C._host_emptyCache()
torch.ones(1024, pin_memory=True).add_(1)
