"""Real and imaginary parts are different bytes."""

import torch

side = torch.cuda.Stream()
z = torch.zeros(64, dtype=torch.complex64, device="cuda")
torch.cuda.synchronize()
z.real.fill_(1)
with torch.cuda.stream(side):
    z.imag.fill_(2)
torch.cuda.synchronize()
