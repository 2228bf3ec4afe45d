"""The same staging: the next step waits for the copies, and so does the host before it writes.

streamsan run examples/checkpoint_staging/fixed.py
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
        self.done = torch.cuda.Event()

    def stage(self):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for name, tensor in self.model.state_dict().items():
                self.staged[name].copy_(tensor, non_blocking=True)
            self.done.record()
        torch.cuda.current_stream().wait_event(self.done)

    def write(self, file):
        self.done.synchronize()
        for name, tensor in self.staged.items():
            file.write(f"{name} {tensor.tolist()}\n".encode())


def main():
    torch.manual_seed(0)
    model = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    checkpointer = Checkpointer(model)
    for step in range(4):
        loss = model(torch.randn(16, 8, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 2:
            checkpointer.stage()
    file = io.BytesIO()
    checkpointer.write(file)
    print("bytes written:", len(file.getvalue()) > 0)


if __name__ == "__main__":
    main()
