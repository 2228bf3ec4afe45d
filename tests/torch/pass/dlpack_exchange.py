"""The exchange that names the consumer's stream makes it wait."""

import torch

side = torch.cuda.Stream()
x = torch.ones(256, device="cuda")
x.mul_(2)
capsule = x.__dlpack__(stream=side.cuda_stream)
with torch.cuda.stream(side):
    y = torch.utils.dlpack.from_dlpack(capsule)
    y.add_(1)
torch.cuda.synchronize()
print(x[0].item())
