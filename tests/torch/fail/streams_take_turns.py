"""A variable of a loop is another stream in each turn: its name is not that of the turn before."""

import torch

streams = [torch.cuda.Stream() for _ in range(2)]
x = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()
for step in range(2):
    stream = streams[step % 2]
    with torch.cuda.stream(stream):
        x.add_(1)  # (1) # error: [SS101] after (1)
torch.cuda.synchronize()
