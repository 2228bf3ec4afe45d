"""A thread with a stream of its own hands over each tensor with an event."""

import queue
import threading

import torch

batches = queue.Queue()


class Loader(threading.Thread):
    def run(self):
        self.stream = torch.cuda.Stream()
        with torch.cuda.stream(self.stream):
            for number in range(3):
                batch = torch.full((1024,), float(number), device="cuda")
                batches.put((batch, self.stream.record_event()))
        batches.put(None)


loader = Loader()
loader.start()
kept, used = [], []
while (item := batches.get()) is not None:
    batch, ready = item
    ready.wait()
    kept.append(batch + 1)
    # Dropped here, its memory would be the loader's again at once: whether that shows is a question of time.
    used.append(batch)
loader.join()
torch.cuda.synchronize()
assert [tensor[0].item() for tensor in kept] == [1.0, 2.0, 3.0]
