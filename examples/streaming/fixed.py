"""Thousands of tensors through one GPU, overlapped and in the memory of four of them.

streamsan run examples/streaming/fixed.py
"""

import torch

import streamsan


def double(x):
    return x * 2


def main():
    tensors = [torch.full((256, 256), float(index)).pin_memory() for index in range(6)]
    results = streamsan.pipeline(double, tensors)
    print("sum:", sum(result.sum().item() for result in results))


if __name__ == "__main__":
    main()
