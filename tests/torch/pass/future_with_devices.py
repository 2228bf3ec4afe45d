"""A future that knows its devices orders the waiter's stream after the producer's."""

import threading

import torch

side = torch.cuda.Stream()
future = torch.futures.Future(devices=["cuda:0"])


def produce():
    with torch.cuda.stream(side):
        future.set_result(torch.ones(256, device="cuda"))


thread = threading.Thread(target=produce)
thread.start()
x = future.wait()
print(x.sum().item())
thread.join()
