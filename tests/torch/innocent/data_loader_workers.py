"""A DataLoader with workers, pinned memory and uploads that don't block."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        torch.manual_seed(index)
        inputs = torch.randn(16)
        return {"inputs": inputs, "label": (inputs.sum() > 0).long(), "index": index}


def train(device, loader):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(2):
        for batch in loader:
            inputs = batch["inputs"].to(device, non_blocking=True)
            label = batch["label"].to(device, non_blocking=True)
            loss = nn.functional.cross_entropy(model(inputs), label)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


if __name__ == "__main__":
    settings = {"batch_size": 16, "num_workers": 2}
    losses = train("cuda", DataLoader(Squares(), pin_memory=True, persistent_workers=True, **settings))
    print("losses:", losses)
    expected = train("cpu", DataLoader(Squares(), batch_size=16))
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-6)
