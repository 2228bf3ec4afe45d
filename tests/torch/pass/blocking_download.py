"""After a blocking copy or a read-back the host knows that the stream is done."""

import torch

side = torch.cuda.Stream()
x = torch.ones(1024, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    host = x.cpu()
x.fill_(2)
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    total = x.sum().item()
x.fill_(3)
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    positions = x.nonzero()
x.fill_(4)
torch.cuda.synchronize()
