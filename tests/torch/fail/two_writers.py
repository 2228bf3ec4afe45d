"""Two streams write the same bytes through different views."""

import torch

first, second = torch.cuda.Stream(), torch.cuda.Stream()
x = torch.zeros(8, 8, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(first):
    x[:, 2:5].fill_(1)  # (1)
with torch.cuda.stream(second):
    x[3, :3].fill_(2)  # error: [SS103] after (1)
torch.cuda.synchronize()
