# @ gpus: 2
"""Two replicas; gradients are summed bucket by bucket on side streams while backward goes on."""

import copy

import torch
from torch import nn


def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))


class Reducer:
    """Adds the gradients of both replicas as soon as both exist."""

    def __init__(self, replicas):
        self.parameters = [list(replica.parameters()) for replica in replicas]
        self.streams = [torch.cuda.Stream(device) for device in (0, 1)]
        self.ready = [{}, {}]
        for device, parameters in enumerate(self.parameters):
            for index, parameter in enumerate(parameters):
                parameter.register_post_accumulate_grad_hook(
                    lambda _, device=device, index=index: self.mark(device, index)
                )

    def mark(self, device, index):
        self.ready[device][index] = torch.cuda.current_stream(device).record_event()

    def reduce(self):
        """Called after both backward passes; last layers first."""
        for index in reversed(range(len(self.parameters[0]))):
            first, second = (parameters[index].grad for parameters in self.parameters)
            for stream in self.streams:
                for device in (0, 1):
                    stream.wait_event(self.ready[device][index])
            with torch.cuda.stream(self.streams[0]):
                first.add_(second.to(first.device, non_blocking=True)).mul_(0.5)
                summed = self.streams[0].record_event()
            self.streams[1].wait_event(summed)
            with torch.cuda.stream(self.streams[1]):
                second.copy_(first, non_blocking=True)
        for device in (0, 1):
            for stream in self.streams:
                torch.cuda.current_stream(device).wait_stream(stream)


def train():
    first = make()
    replicas = [first.to("cuda:0"), copy.deepcopy(first).to("cuda:1")]
    reducer = Reducer(replicas)
    optimizers = [torch.optim.SGD(replica.parameters(), lr=0.1) for replica in replicas]
    losses = []
    for _ in range(4):
        halves = torch.randn(16, 8).split(8)
        parts = []
        for device, (replica, half) in enumerate(zip(replicas, halves, strict=True)):
            with torch.cuda.device(device):
                loss = replica(half.to(device)).square().mean()
                loss.backward()
                parts.append(loss.detach())
        reducer.reduce()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(sum(part.item() for part in parts) / 2)
    for one, other in zip(*(replica.parameters() for replica in replicas), strict=True):
        torch.testing.assert_close(one.cpu(), other.cpu())
    return losses


def train_on_cpu():
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        loss = model(torch.randn(16, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


losses = train()
print("losses:", losses)
torch.testing.assert_close(losses, train_on_cpu(), rtol=1e-4, atol=1e-6)
