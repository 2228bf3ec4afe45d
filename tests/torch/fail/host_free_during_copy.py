"""Page-locked memory that the program made itself is freed under a pending copy that torch knows nothing of."""

import ctypes

import torch

x = torch.ones(1024, device="cuda")
cuda = ctypes.CDLL(None)
memory = ctypes.c_void_p()
status = cuda.cudaHostAlloc(ctypes.byref(memory), 4096, 0); assert status == 0
cuda.cudaMemcpyAsync(memory, ctypes.c_void_p(x.data_ptr()), 4096, 2, None)  # (1)
cuda.cudaFreeHost(memory)  # error: [SS303] after (1)
torch.cuda.synchronize()
