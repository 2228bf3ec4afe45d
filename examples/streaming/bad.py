"""Thousands of tensors through one GPU, as it is often copied: three streams, and nothing between them.

streamsan run examples/streaming/bad.py
"""

import torch


def double(x):
    return x * 2


def stream_all(function, tensors):
    up, compute, down = (torch.cuda.Stream() for _ in range(3))
    results = []
    for tensor in tensors:
        with torch.cuda.stream(up):
            x = tensor.to("cuda", non_blocking=True)
        with torch.cuda.stream(compute):
            y = function(x)
        with torch.cuda.stream(down):
            results.append(y.to("cpu", non_blocking=True))
    return results


def main():
    tensors = [torch.full((256, 256), float(index)).pin_memory() for index in range(6)]
    results = stream_all(double, tensors)
    print("sum:", sum(result.sum().item() for result in results))


if __name__ == "__main__":
    main()
