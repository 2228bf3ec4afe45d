"""Gradients leave for pinned memory as soon as they exist; the host steps and sends the weights back."""

import torch
from torch import nn


class HostOptimizer:
    """Weights are kept on the host; a gradient on the device lives only until it is copied."""

    def __init__(self, model, rate):
        self.rate = rate
        self.stream = torch.cuda.Stream()
        self.weights = {p: p.detach().cpu().pin_memory() for p in model.parameters()}
        self.gradients = {p: torch.empty_like(w, pin_memory=True) for p, w in self.weights.items()}
        self.copied = {}
        for parameter in self.weights:
            parameter.register_post_accumulate_grad_hook(self.offload)

    def offload(self, parameter):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.gradients[parameter].copy_(parameter.grad, non_blocking=True)
            parameter.grad.record_stream(self.stream)
            self.copied[parameter] = self.stream.record_event()
        parameter.grad = None

    @torch.no_grad()
    def step(self):
        for parameter, weight in self.weights.items():
            self.copied[parameter].synchronize()
            weight.sub_(self.gradients[parameter], alpha=self.rate)
            parameter.copy_(weight, non_blocking=True)
        # The next step writes the pinned weights again.
        torch.cuda.current_stream().synchronize()


def train(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)).to(
        device
    )
    optimizer = HostOptimizer(model, 0.1) if device == "cuda" else torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        loss = model(torch.randn(8, 16).to(device)).square().mean()
        loss.backward()
        optimizer.step()
        model.zero_grad()
        losses.append(loss.item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
