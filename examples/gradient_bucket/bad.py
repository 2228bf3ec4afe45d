"""Gradients of two devices are averaged on side streams. One waits for backward, the other was forgotten.

streamsan run --device-count 2 examples/gradient_bucket/bad.py
"""

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class Bucket:
    """All gradients of a replica in one flat tensor, averaged over both replicas on side streams."""

    def __init__(self, replicas):
        self.replicas = replicas
        self.streams = [torch.cuda.Stream(device) for device in range(2)]
        size = sum(parameter.numel() for parameter in replicas[0].parameters())
        self.flat = [torch.zeros(size, device=f"cuda:{device}") for device in range(2)]
        self.received = torch.zeros(size, device="cuda:0")

    def fill(self, device):
        gradients = [parameter.grad for parameter in self.replicas[device].parameters()]
        self.flat[device].copy_(parameters_to_vector(gradients))  # (1)

    def average(self):
        self.streams[0].wait_stream(torch.cuda.current_stream(0))
        with torch.cuda.stream(self.streams[0]), torch.cuda.stream(self.streams[1]):
            self.received.copy_(self.flat[1], non_blocking=True)  # error: [SS101] after (1)
            self.flat[0].add_(self.received).div_(2)
            self.flat[1].copy_(self.flat[0], non_blocking=True)  # error: [SS103] after (1)
        for device in range(2):
            torch.cuda.current_stream(device).wait_stream(self.streams[device])

    def apply(self, device, rate):
        with torch.no_grad():
            weights = parameters_to_vector(self.replicas[device].parameters())
            updated = weights - rate * self.flat[device]
            vector_to_parameters(updated, self.replicas[device].parameters())


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    state = model.state_dict()
    replicas = []
    for device in range(2):
        replica = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
        replica.load_state_dict(state)
        replicas.append(replica.to(f"cuda:{device}"))
    bucket = Bucket(replicas)
    for _ in range(3):
        for device, half in enumerate(torch.randn(32, 16).split(16)):
            replicas[device].zero_grad()
            loss = replicas[device](half.to(f"cuda:{device}")).square().mean()
            loss.backward()
            bucket.fill(device)
        bucket.average()
        for device in range(2):
            bucket.apply(device, 0.1)
    print("loss:", loss.item())


if __name__ == "__main__":
    main()
