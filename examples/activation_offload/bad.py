"""Activations are copied to pinned memory for backward. Their device memory is given up during the copy.

streamsan run examples/activation_offload/bad.py
"""

import torch
from torch import nn


class Offload(torch.autograd.graph.saved_tensors_hooks):
    """Keeps what backward needs in pinned memory."""

    def __init__(self):
        self.stream = torch.cuda.Stream()
        super().__init__(self.pack, self.unpack)

    def pack(self, tensor):
        if isinstance(tensor, nn.Parameter) or tensor.dim() < 2:
            return tensor
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            host.copy_(tensor, non_blocking=True)  # (1)
        return host, self.stream.record_event()

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        host, copied = packed
        torch.cuda.current_stream().wait_event(copied)
        return host.to("cuda", non_blocking=True)


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return torch.tanh(self.linear(x))  # error: [SS202] after (1)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(64) for _ in range(4)]).cuda()
    inputs = torch.randn(32, 64, device="cuda")
    with Offload():
        loss = model(inputs).square().mean()
    loss.backward()
    print("loss:", loss.item())


if __name__ == "__main__":
    main()
