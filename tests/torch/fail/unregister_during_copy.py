"""Ordinary memory is registered, copied to by torch and unregistered while the copy is pending."""

import torch

x = torch.ones(1 << 16, device="cuda")
stage = torch.zeros(1 << 16)
torch.cuda.synchronize()
runtime = torch.cuda.cudart()
runtime.cudaHostRegister(stage.data_ptr(), stage.numel() * 4, 0)
stage.copy_(x, non_blocking=True)  # (1)
runtime.cudaHostUnregister(stage.data_ptr())  # error: [SS303] after (1)
torch.cuda.synchronize()
