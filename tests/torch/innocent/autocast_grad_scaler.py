"""Mixed precision: autocast to bfloat16 and a GradScaler."""

import torch
from torch import nn


def train(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 8)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler(device, init_scale=256.0, growth_interval=3)
    losses = []
    for _ in range(8):
        inputs, labels = torch.randn(32, 32).to(device), torch.randint(0, 8, (32,)).to(device)
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    losses.append(scaler.get_scale())
    return losses


losses = train("cuda")
print("losses:", losses)
# Halves are rounded in another order on the two devices.
torch.testing.assert_close(losses, train("cpu"), rtol=2e-2, atol=1e-3)
