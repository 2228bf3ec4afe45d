"""Fourier transforms, convolutions of sound, and linear algebra in a loss."""

import torch
from torch import nn


def train(device):
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv1d(1, 4, 5, padding=2), nn.GELU(), nn.Conv1d(4, 1, 5, padding=2)).to(device)
    window = torch.hann_window(32, device=device)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.05)
    losses = []
    for _ in range(3):
        sound = torch.randn(2, 1, 128).to(device)
        output = layers(sound)
        spectra = [
            torch.stft(signal[:, 0], 32, 16, window=window, return_complex=True).abs()
            for signal in (sound, output)
        ]
        covariance = output[:, 0, :16].T @ output[:, 0, :16] + torch.eye(16, device=device)
        factor = torch.linalg.cholesky(covariance)
        solved = torch.linalg.solve(covariance, torch.ones(16, 1, device=device))
        loss = (
            (spectra[0] - spectra[1]).abs().mean() + factor.diagonal().log().mean() + solved.square().mean()
        )
        loss = loss + torch.fft.rfft(output).abs().mean() / 10
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-5)
