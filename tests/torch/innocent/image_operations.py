"""Sampling, interpolation, pooling and other operations on images, with their gradients."""

import torch
from torch.nn import functional as F


def run(device):
    torch.manual_seed(0)
    images = torch.randn(2, 3, 8, 8).to(device).requires_grad_()
    grid = (torch.rand(2, 4, 4, 2) * 2 - 1).to(device)
    pooled, places = F.max_pool2d(images, 2, return_indices=True)
    parts = [
        F.grid_sample(images, grid, align_corners=False).sum(),
        F.interpolate(images, scale_factor=2, mode="bilinear").square().mean(),
        F.interpolate(images, size=(5, 5), mode="nearest").square().mean(),
        F.fold(F.unfold(images, 3), (8, 8), 3).mean(),
        F.pixel_shuffle(images.repeat(1, 4, 1, 1), 2).square().mean(),
        F.max_unpool2d(pooled, places, 2).square().mean(),
        F.adaptive_max_pool2d(images, 2).sum(),
        F.avg_pool2d(images, 3, stride=2, padding=1).square().sum(),
        F.pad(images, (1, 1, 1, 1), mode="reflect").square().mean(),
        F.conv_transpose2d(images, torch.ones(3, 2, 2, 2, device=device)).square().mean(),
        F.local_response_norm(images, 2).mean(),
        torch.cdist(images.flatten(2)[0], images.flatten(2)[1]).mean(),
        torch.einsum("bchw,bdhw->bcd", images, images).mean(),
        F.kl_div(images.log_softmax(1), images.detach().softmax(1), reduction="batchmean"),
    ]
    total = torch.stack(parts).sum()
    total.backward()
    return [part.item() for part in parts] + [images.grad.abs().sum().item()]


losses = run("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, run("cpu"), rtol=1e-4, atol=1e-5)
