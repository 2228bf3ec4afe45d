"""Weights and optimizer state staged to pinned memory on a side stream, written, loaded, training resumed."""

import io

import torch
from torch import nn


def make(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)


def steps(model, optimizer, inputs):
    for batch in inputs:
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def stage(model, stream):
    """Copies the weights to pinned memory without a wait of the host."""
    stream.wait_stream(torch.cuda.current_stream())
    staged = {}
    with torch.cuda.stream(stream):
        for name, tensor in model.state_dict().items():
            staged[name] = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            staged[name].copy_(tensor, non_blocking=True)
    return staged, stream.record_event()


def train(device):
    torch.manual_seed(1)
    inputs = torch.randn(6, 8, 8)
    model, optimizer = make(device)
    losses = list(steps(model, optimizer, inputs[:3].to(device)))
    if device == "cuda":
        stream = torch.cuda.Stream()
        staged, copied = stage(model, stream)
        # The next step writes the weights: it waits for the copy, the host does so too before it reads.
        torch.cuda.current_stream().wait_event(copied)
        copied.synchronize()
        state = {"model": {name: tensor.clone() for name, tensor in staged.items()}}
    else:
        state = {"model": model.state_dict()}
    state["optimizer"] = optimizer.state_dict()
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded = torch.load(file, map_location=device, weights_only=True)
    model, optimizer = make(device)
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    return losses + list(steps(model, optimizer, inputs[3:].to(device)))


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
