"""A data loader whose thread pins batches."""

import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.arange(8.0))
sums = []
for (batch,) in DataLoader(data, batch_size=2, pin_memory=True):
    assert batch.is_pinned()
    sums.append(batch.to("cuda", non_blocking=True).sum())
assert torch.stack(sums).tolist() == [1.0, 5.0, 9.0, 13.0]
