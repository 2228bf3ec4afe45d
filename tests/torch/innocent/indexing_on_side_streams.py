"""Embedding bags, index operations, scatter and segment sums on side streams, with waits both ways."""

import torch
from torch import nn


def train(device):
    torch.manual_seed(0)
    bag = nn.EmbeddingBag(30, 8, mode="sum").to(device)
    table = nn.Embedding(20, 8, padding_idx=0).to(device)
    parameters = [*bag.parameters(), *table.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    streams = [torch.cuda.Stream(), torch.cuda.Stream()] if device == "cuda" else [None, None]
    losses = []
    for _ in range(4):
        indices = torch.randint(0, 30, (12,)).to(device)
        offsets = torch.tensor([0, 3, 7, 10]).to(device)
        rows = torch.randint(0, 20, (4, 5)).to(device)
        groups = torch.tensor([0, 1, 1, 2]).to(device)
        if device == "cuda":
            for stream in streams:
                stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(streams[0]):
            pooled = bag(indices, offsets)
        with torch.cuda.stream(streams[1]):
            looked = table(rows)
            picked = looked.index_select(1, torch.tensor([4, 0, 2], device=device))
            gathered = torch.gather(picked, 1, torch.zeros(4, 1, 8, dtype=torch.long, device=device))
            summed = torch.zeros(3, 8, device=device).index_add(0, groups, gathered[:, 0])
            spread = torch.zeros(4, 8, device=device).scatter_reduce(
                0, groups[:, None].expand(-1, 8), picked.mean(1), reduce="amax"
            )
        if device == "cuda":
            for stream in streams:
                torch.cuda.current_stream().wait_stream(stream)
        loss = (pooled - spread).square().mean() + summed.abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        # What the side streams read goes back to the default one; what they made, to them.
        if device == "cuda":
            for stream in streams:
                stream.wait_stream(torch.cuda.current_stream())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
