"""Activations go to pinned memory on a side stream during forward and come back before backward."""

import torch
from torch import nn


class Offload(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self):
        self.stream = torch.cuda.Stream()
        super().__init__(self.pack, self.unpack)

    def pack(self, tensor):
        if tensor.device.type != "cuda" or tensor.numel() < 512 or isinstance(tensor, nn.Parameter):
            return tensor
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            host.copy_(tensor, non_blocking=True)
        tensor.record_stream(self.stream)
        return host, self.stream.record_event()

    def unpack(self, packed):
        if isinstance(packed, torch.Tensor):
            return packed
        host, copied = packed
        torch.cuda.current_stream().wait_event(copied)
        return host.to("cuda", non_blocking=True)


def train(device):
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(32, 32), nn.Tanh()) for _ in range(4)]
    model = nn.Sequential(*layers, nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        inputs = torch.randn(32, 32).to(device)
        if device == "cuda":
            with Offload():
                loss = model(inputs).square().mean()
        else:
            loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
