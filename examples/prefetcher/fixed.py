"""The same prefetcher: `record_stream` keeps a batch's memory until the model has read it.

streamsan run examples/prefetcher/fixed.py
"""

import torch
from torch import nn


class Prefetcher:
    """Uploads and normalises the next batch on a side stream while the model works on this one."""

    def __init__(self, loader):
        self.loader = iter(loader)
        self.stream = torch.cuda.Stream()
        self.mean = torch.tensor([0.48, 0.46, 0.41], device="cuda").view(1, 3, 1, 1)
        self.std = torch.tensor([0.23, 0.22, 0.23], device="cuda").view(1, 3, 1, 1)
        self.stream.wait_stream(torch.cuda.current_stream())
        self.preload()

    def preload(self):
        try:
            self.next_images = next(self.loader)
        except StopIteration:
            self.next_images = None
            return
        with torch.cuda.stream(self.stream):
            self.next_images = self.next_images.cuda(non_blocking=True)
            self.next_images = self.next_images.sub_(self.mean).div_(self.std)

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        images = self.next_images
        if images is not None:
            images.record_stream(torch.cuda.current_stream())
            self.preload()
        return images


def main():
    torch.manual_seed(0)
    loader = [torch.rand(4, 3, 16, 16).pin_memory() for _ in range(5)]
    model = nn.Conv2d(3, 8, 3).cuda()
    total = torch.zeros((), device="cuda")
    with torch.no_grad():
        prefetcher = Prefetcher(loader)
        images = prefetcher.next()
        while images is not None:
            total += model(images).square().mean()
            images = prefetcher.next()
    print("sum of means:", total.item())


if __name__ == "__main__":
    main()
