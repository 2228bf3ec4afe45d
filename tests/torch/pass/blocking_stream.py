"""A stream that CUDA made without the non-blocking flag is ordered with the default stream."""

import ctypes

import torch

x = torch.zeros(256, device="cuda")
torch.cuda.synchronize()
handle = ctypes.c_void_p()
status = torch.cuda.cudart().cudaStreamCreate(ctypes.addressof(handle))
assert int(status) == 0
legacy = torch.cuda.ExternalStream(handle.value)
with torch.cuda.stream(legacy):
    x.add_(1)
y = x.sum()
torch.cuda.synchronize()
