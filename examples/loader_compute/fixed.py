"""The same loader: the computation waits for the upload, and the next upload for the computation.

streamsan run examples/loader_compute/fixed.py
"""

import torch


class Loader:
    """Uploads batches on a stream of its own, so that the upload overlaps the computation."""

    def __init__(self, batches):
        self.batches = batches
        self.stream = torch.cuda.Stream()

    def load(self, index, batch):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            batch.copy_(self.batches[index], non_blocking=True)
        torch.cuda.current_stream().wait_stream(self.stream)


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
    print("sum of means:", total.item())


if __name__ == "__main__":
    main()
