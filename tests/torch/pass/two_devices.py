#@ gpus: 2
"""Copies between devices and streams of the second one."""

import torch

assert torch.cuda.device_count() == 2
here = torch.arange(4.0, device="cuda:0")
there = here.to("cuda:1")
assert (there * 2).tolist() == [0.0, 2.0, 4.0, 6.0]
assert here[::2].to("cuda:1").tolist() == [0.0, 2.0]
assert there.half().to("cuda:0").tolist() == [0.0, 1.0, 2.0, 3.0]
stream = torch.cuda.Stream(device=1)
with torch.cuda.stream(stream):
    made = torch.ones(3, device="cuda:1")
torch.cuda.current_stream(1).wait_stream(stream)
made.copy_(torch.zeros(3, device="cuda:0"))
assert made.tolist() == [0.0] * 3
