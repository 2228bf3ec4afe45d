"""A thread with a stream of its own hands tensors over, but no event."""

import queue
import threading

import torch

batches = queue.Queue()


def load():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for number in range(3):
            batches.put(torch.full((1024,), float(number), device="cuda"))  # (1)
    batches.put(None)


loader = threading.Thread(target=load)
loader.start()
kept = []
while (batch := batches.get()) is not None:
    kept += [batch, batch + 1]  # error: [SS101] after (1)
loader.join()
torch.cuda.synchronize()
