"""The stream that a function gets is another one at each call: its name there is not that of the earlier one."""

import torch

x = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()


def work(stream, value):
    with torch.cuda.stream(stream):
        x.fill_(value)  # (1) # error: [SS103] after (1)


def main():
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    work(one, 1.0)
    work(two, 2.0)
    torch.cuda.synchronize()


main()
