"""Every call passes the same stream: the name of the parameter means it in later calls too."""

import torch


def step(x, side):
    total = x.sum()  # error: [SS101] after (2)
    side.wait_stream(torch.cuda.default_stream())
    with torch.cuda.stream(side):
        x.add_(1.0)  # (2)
    return total


def main():
    side = torch.cuda.Stream()
    x = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    for _ in range(3):
        step(x, side)
    torch.cuda.synchronize()


main()
