"""A convnet with batch norm, a learning rate schedule and an evaluation."""

import torch
from torch import nn


def train(device):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=2),
        nn.GroupNorm(4, 16),
        nn.SiLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 4),
    ).to(device)
    model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    losses = []
    for _ in range(6):
        images, labels = torch.randn(8, 3, 16, 16), torch.randint(0, 4, (8,))
        images = images.to(device, non_blocking=True).contiguous(memory_format=torch.channels_last)
        loss = nn.functional.cross_entropy(model(images), labels.to(device), label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        images = torch.randn(8, 3, 16, 16).to(device)
        losses.append(model(images).square().mean().item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
