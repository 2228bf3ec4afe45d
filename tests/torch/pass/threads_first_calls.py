"""Threads call the same operators for the first time.

torch ends the program if one thread comes to an operator while another is in the middle of looking up its object,
which takes long here. Under a plain `TorchDispatchMode` this fails.
"""

import threading
import time

import torch

x = torch.ones(8, device="cuda")
torch.cuda.synchronize()

plain = type(torch.ops.aten).__getattr__


def slow(self, name):
    value = plain(self, name)
    time.sleep(0.02)
    return value


def work(stream, results):
    with torch.cuda.stream(stream):
        results.append(torch._foreach_sinh(torch._foreach_acos([x])))


streams = [torch.cuda.Stream() for _ in range(4)]
results = []
threads = [threading.Thread(target=work, args=(stream, results)) for stream in streams]
type(torch.ops.aten).__getattr__ = slow
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(results) == 4

torch.cuda.synchronize()
