"""Two networks against each other, with a gradient penalty: backward through backward."""

import torch
from torch import nn


def train(device):
    torch.manual_seed(0)
    maker = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 8)).to(device)
    critic = nn.Sequential(nn.Linear(8, 16), nn.Softplus(), nn.Linear(16, 1)).to(device)
    for_maker = torch.optim.Adam(maker.parameters(), lr=1e-3, betas=(0.5, 0.9))
    for_critic = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    losses = []
    for step in range(4):
        real, noise = torch.rand(16, 8).to(device), torch.randn(16, 4).to(device)
        false = maker(noise).detach()
        mixed = torch.lerp(real, false, torch.rand(16, 1).to(device)).requires_grad_()
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        penalty = (slope.norm(dim=1) - 1).square().mean()
        loss = critic(false).mean() - critic(real).mean() + 10 * penalty
        for_critic.zero_grad()
        loss.backward()
        for_critic.step()
        losses.append(loss.item())
        if step % 2:
            critic.requires_grad_(False)
            loss = -critic(maker(noise)).mean()
            for_maker.zero_grad()
            loss.backward()
            for_maker.step()
            critic.requires_grad_(True)
            losses.append(loss.item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-5)
