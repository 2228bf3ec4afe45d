"""The current stream belongs to a thread; the pool's threads have the default stream."""

from concurrent.futures import ThreadPoolExecutor

import torch

side = torch.cuda.Stream()
pool = ThreadPoolExecutor(1)


def normalize(x):
    return x / x.norm()  # error: [SS101] after (1)


with torch.cuda.stream(side):
    x = torch.ones(512, device="cuda")  # (1)
    y = pool.submit(normalize, x).result()
torch.cuda.synchronize()
print(y.sum().item())
