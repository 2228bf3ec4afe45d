"""Weights live on the host and visit two device buffers in turn. A buffer is filled while it is still read.

streamsan run examples/offloaded_weights/bad.py
"""

import torch


class OffloadedWeights:
    """Weights in pinned memory; layer n + 1 is uploaded while layer n computes."""

    def __init__(self, weights):
        self.weights = [weight.pin_memory() for weight in weights]
        self.buffers = [torch.empty_like(weights[0], device="cuda") for _ in range(2)]
        self.stream = torch.cuda.Stream()
        self.uploaded = [torch.cuda.Event() for _ in range(2)]
        self.stream.wait_stream(torch.cuda.current_stream())

    def upload(self, layer):
        slot = layer % 2
        with torch.cuda.stream(self.stream):
            self.buffers[slot].copy_(self.weights[layer], non_blocking=True)  # error: [SS102] after (1)
            self.uploaded[slot].record()

    def forward(self, hidden):
        self.upload(0)
        for layer in range(len(self.weights)):
            if layer + 1 < len(self.weights):
                self.upload(layer + 1)
            slot = layer % 2
            torch.cuda.current_stream().wait_event(self.uploaded[slot])
            hidden = torch.tanh(hidden @ self.buffers[slot])  # (1)
        return hidden


def main():
    torch.manual_seed(0)
    model = OffloadedWeights([torch.randn(64, 64) / 8 for _ in range(6)])
    result = model.forward(torch.randn(16, 64, device="cuda"))
    print("mean:", result.mean().item())


if __name__ == "__main__":
    main()
