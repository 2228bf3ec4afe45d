"""The same two buffers: an upload waits until the layer that read its buffer is done.

streamsan run examples/offloaded_weights/fixed.py
"""

import torch


class OffloadedWeights:
    """Weights in pinned memory; layer n + 1 is uploaded while layer n computes."""

    def __init__(self, weights):
        self.weights = [weight.pin_memory() for weight in weights]
        self.buffers = [torch.empty_like(weights[0], device="cuda") for _ in range(2)]
        self.stream = torch.cuda.Stream()
        self.uploaded = [torch.cuda.Event() for _ in range(2)]
        self.computed = [torch.cuda.Event() for _ in range(2)]
        self.stream.wait_stream(torch.cuda.current_stream())

    def upload(self, layer):
        slot = layer % 2
        with torch.cuda.stream(self.stream):
            if layer >= 2:
                self.stream.wait_event(self.computed[slot])
            self.buffers[slot].copy_(self.weights[layer], non_blocking=True)
            self.uploaded[slot].record()

    def forward(self, hidden):
        self.upload(0)
        for layer in range(len(self.weights)):
            if layer + 1 < len(self.weights):
                self.upload(layer + 1)
            slot = layer % 2
            torch.cuda.current_stream().wait_event(self.uploaded[slot])
            hidden = torch.tanh(hidden @ self.buffers[slot])
            self.computed[slot].record()
        return hidden


def main():
    torch.manual_seed(0)
    model = OffloadedWeights([torch.randn(64, 64) / 8 for _ in range(6)])
    result = model.forward(torch.randn(16, 64, device="cuda"))
    print("mean:", result.mean().item())


if __name__ == "__main__":
    main()
