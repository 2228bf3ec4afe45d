"""A small denoising network: trained, then samples with its layers moved to the device one by one."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Linear(8, 16)
        self.down = nn.Conv2d(1, 16, 3, stride=2, padding=1)
        self.middle = nn.Sequential(nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1))
        self.up = nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1)
        self.out = nn.Conv2d(9, 1, 3, padding=1)

    def forward(self, x, time):
        frequencies = torch.exp(torch.linspace(0, 3, 4, device=x.device))
        angles = time[:, None].float() * frequencies / 50
        embedding = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        hidden = self.down(x) + embedding[:, :, None, None]
        hidden = self.up(hidden + self.middle(hidden))
        return self.out(torch.cat([hidden, x], 1))


def train(device):
    torch.manual_seed(0)
    model = Net().to(device)
    alphas = torch.cumprod(1 - torch.linspace(1e-4, 0.1, 50), 0).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses = []
    for _ in range(4):
        clean, noise = torch.rand(4, 1, 8, 8).to(device), torch.randn(4, 1, 8, 8).to(device)
        time = torch.randint(0, 50, (4,)).to(device)
        level = alphas[time][:, None, None, None]
        loss = (model(level.sqrt() * clean + (1 - level).sqrt() * noise, time) - noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    # Weights live on the host and visit the device only while their layer runs.
    model.to("cpu")
    for layer in model.children():
        layer.register_forward_pre_hook(lambda layer, args: layer.to(device) and None)
        layer.register_forward_hook(lambda layer, args, output: layer.to("cpu") and None)
    x = torch.randn(2, 1, 8, 8).to(device)
    with torch.inference_mode():
        for step in range(45, 0, -15):
            predicted = model(x, torch.full((2,), step, device=device))
            now, then = alphas[step], alphas[max(step - 15, 0)]
            start = ((x - (1 - now).sqrt() * predicted) / now.sqrt()).clamp(-1, 1)
            x = then.sqrt() * start + (1 - then).sqrt() * predicted
    losses.append(x.mean().item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-5)
