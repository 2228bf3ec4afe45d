"""Inside the stream's block the current stream is the stream itself."""

import torch

side = torch.cuda.Stream()
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()
x.fill_(1)  # (1)
with torch.cuda.stream(side):
    side.wait_stream(torch.cuda.current_stream())  # warning: [SS403]
    y = x * 2  # error: [SS101] after (1)
torch.cuda.synchronize()
