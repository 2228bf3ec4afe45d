"""Strided views whose bytes interleave but do not overlap."""

import torch

first, second = torch.cuda.Stream(), torch.cuda.Stream()
x = torch.zeros(8, 8, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(first):
    x[:, ::2].fill_(1)
with torch.cuda.stream(second):
    x[:, 1::2].fill_(2)
torch.cuda.synchronize()
