"""Weights are staged to pinned memory for a checkpoint. It is written, and training goes on, too early.

streamsan run examples/checkpoint_staging/bad.py
"""

import io

import torch
from torch import nn


class Checkpointer:
    """Copies weights to pinned memory on a side stream and writes them from there."""

    def __init__(self, model):
        self.model = model
        self.stream = torch.cuda.Stream()
        self.staged = {
            name: torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            for name, tensor in model.state_dict().items()
        }

    def stage(self):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for name, tensor in self.model.state_dict().items():
                self.staged[name].copy_(tensor, non_blocking=True)  # (1)

    def write(self, file):
        for name, tensor in self.staged.items():
            file.write(f"{name} {tensor.tolist()}\n".encode())  # error: [SS301] after (1)


def main():
    torch.manual_seed(0)
    model = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    checkpointer = Checkpointer(model)
    for step in range(4):
        loss = model(torch.randn(16, 8, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # error: [SS102] after (1)
        if step == 2:
            checkpointer.stage()
    file = io.BytesIO()
    checkpointer.write(file)
    print("bytes written:", len(file.getvalue()) > 0)


if __name__ == "__main__":
    main()
