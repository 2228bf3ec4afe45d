"""The wait of each turn stands before the record of that turn: it sees the last turn's."""

import torch

side = torch.cuda.Stream()
buffers = [torch.zeros(256, device="cuda") for _ in range(3)]
total = torch.zeros(256, device="cuda")
torch.cuda.synchronize()
ready = torch.cuda.Event()
ready.record()
for step in range(3):
    torch.cuda.current_stream().wait_event(ready)
    with torch.cuda.stream(side):
        buffers[step].fill_(step)  # (1)
        ready.record()
    total += buffers[step]  # error: [SS101] after (1)
torch.cuda.synchronize()
