"""A plain future hands a tensor over on the host only."""

import threading

import torch

side = torch.cuda.Stream()
future = torch.futures.Future()


def produce():
    with torch.cuda.stream(side):
        future.set_result(torch.ones(256, device="cuda"))  # (1)


thread = threading.Thread(target=produce)
thread.start()
x = future.wait()
print(x.sum().item())  # error: [SS101] after (1)
thread.join()
