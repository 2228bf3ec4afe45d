"""Weights are cast from FP32 to FP16 on a side stream. The model does not wait for the cast.

streamsan run examples/cast/bad.py
"""

import torch


class HalfWeights:
    """FP16 copies of FP32 weights, made again after every step on a stream of their own."""

    def __init__(self, weights):
        self.weights = weights
        self.halves = [torch.empty_like(weight, dtype=torch.half) for weight in weights]
        self.stream = torch.cuda.Stream()

    def cast(self):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for weight, half in zip(self.weights, self.halves, strict=True):
                half.copy_(weight)  # (1)


def main():
    torch.manual_seed(0)
    weights = [torch.randn(64, 64, device="cuda") / 8 for _ in range(3)]
    inputs = torch.randn(32, 64, device="cuda", dtype=torch.half)
    half_weights = HalfWeights(weights)
    for _ in range(3):
        half_weights.cast()
        # Work that needs no weights, so that the cast costs nothing.
        hidden = inputs / inputs.norm(dim=1, keepdim=True)
        for half in half_weights.halves:
            hidden = torch.relu(hidden @ half)  # error: [SS101] after (1)
        for weight in weights:
            weight.mul_(0.9)  # error: [SS102] after (1)
    print("mean:", hidden.float().mean().item())


if __name__ == "__main__":
    main()
