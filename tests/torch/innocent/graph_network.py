"""Messages over the edges of a graph: index_add, scatter_reduce, a sparse matrix."""

import torch
from torch import nn


def train(device):
    torch.manual_seed(0)
    nodes, edges = torch.randn(20, 8).to(device), torch.randint(0, 20, (2, 60)).to(device)
    labels = torch.randint(0, 3, (20,)).to(device)
    message, update, head = nn.Linear(16, 8), nn.GRUCell(8, 8), nn.Linear(8, 3)
    model = nn.ModuleList([message, update, head]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    source, target = edges
    degree = torch.zeros(20, device=device).index_add(0, target, torch.ones(60, device=device)).clamp(min=1)
    losses = []
    for _ in range(4):
        hidden = nodes
        for _ in range(2):
            messages = torch.relu(message(torch.cat([hidden[source], hidden[target]], 1)))
            weight = torch.exp(messages.mean(1))
            total = torch.zeros_like(degree).scatter_add(0, target, weight)
            messages = messages * (weight / total[target])[:, None]
            pooled = torch.zeros_like(hidden).index_add(0, target, messages) / degree[:, None]
            hidden = update(pooled, hidden)
        loss = nn.functional.cross_entropy(head(hidden), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
