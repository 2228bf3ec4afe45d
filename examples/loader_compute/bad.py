"""A loader fills a batch on its own stream; the model reads it on another one. Nothing waits.

streamsan run examples/loader_compute/bad.py
"""

import torch


class Loader:
    """Uploads batches on a stream of its own, so that the upload overlaps the computation."""

    def __init__(self, batches):
        self.batches = batches
        self.stream = torch.cuda.Stream()

    def load(self, index, batch):
        with torch.cuda.stream(self.stream):
            batch.copy_(self.batches[index], non_blocking=True)


def main():
    host = [torch.full((256, 256), float(index)).pin_memory() for index in range(4)]
    loader = Loader(host)
    weight = torch.eye(256, device="cuda")
    batch = torch.zeros(256, 256, device="cuda")
    total = torch.zeros((), device="cuda")
    torch.cuda.synchronize()

    for index in range(len(host)):
        loader.load(index, batch)
        result = torch.relu(batch @ weight)
        total += result.mean()
        torch.cuda.synchronize()
    print("sum of means:", total.item())


if __name__ == "__main__":
    main()
