"""Forward on a side stream, backward from the default one; and the other way round."""

import torch
from torch import nn


def train(device, forward, backward):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        inputs = torch.randn(16, 16).to(device)
        if device == "cpu":
            loss = model(inputs).square().mean()
            loss.backward()
        else:
            main = torch.cuda.current_stream()
            forward.wait_stream(main)
            with torch.cuda.stream(forward):
                loss = model(inputs).square().mean()
            backward.wait_stream(forward)
            with torch.cuda.stream(backward):
                loss.backward()
            main.wait_stream(backward)
            main.wait_stream(forward)
            inputs.record_stream(forward)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


expected = train("cpu", None, None)
default, side, other = torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()
for forward, backward in [(default, default), (side, default), (side, side), (side, other), (default, side)]:
    losses = train("cuda", forward, backward)
    print("losses:", losses)
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-6)
