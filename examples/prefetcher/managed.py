"""A prefetcher for training without a stream in sight: batches are uploaded ahead into three slots.

streamsan run examples/prefetcher/managed.py
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import streamsan


def main():
    torch.manual_seed(0)
    images, labels = torch.rand(40, 3, 16, 16), torch.randint(0, 5, (40,))
    loader = DataLoader(TensorDataset(images, labels), batch_size=8, pin_memory=True)
    mean = torch.tensor([0.48, 0.46, 0.41], device="cuda").view(1, 3, 1, 1)
    std = torch.tensor([0.23, 0.22, 0.23], device="cuda").view(1, 3, 1, 1)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 196, 5)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        losses = []
        for batch_images, batch_labels in streamsan.prefetch(loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model((batch_images - mean) / std), batch_labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        print(f"epoch {epoch}: loss {torch.stack(losses).mean().item():.4f}")


if __name__ == "__main__":
    main()
