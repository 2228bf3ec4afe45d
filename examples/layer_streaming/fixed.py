"""A model larger than the GPU: its layers are the items of a pipeline, with three of them on the device.

streamsan run --device-memory 48MiB examples/layer_streaming/fixed.py
"""

import torch

import streamsan

WIDTH = 1024


def forward(layers, x):
    """Runs all layers on ``x``; only three of them are on the device at once."""
    state = [x]

    def apply(weight):
        state[0] = torch.relu(state[0] @ weight)

    streamsan.pipeline(apply, layers, slots=3)
    return state[0]


def main():
    torch.manual_seed(0)
    layers = [(torch.eye(WIDTH) + 0.001 * torch.randn(WIDTH, WIDTH)).pin_memory() for _ in range(20)]
    x = torch.ones(8, WIDTH, device="cuda")
    print("mean:", forward(layers, x).mean().item())


if __name__ == "__main__":
    main()
