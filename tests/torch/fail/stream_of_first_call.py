"""One call of two does not wait. The line allocates before it reads: the parameter is the same stream at both."""

import torch

x = torch.zeros(1 << 20, device="cuda")
torch.cuda.synchronize()


def work(stream, is_careful):
    with torch.cuda.stream(stream):
        x.fill_(2.0)  # (1)
    if is_careful:
        torch.cuda.current_stream().wait_stream(stream)
    y = x + 1  # error: [SS101] after (1)
    torch.cuda.synchronize()
    return y


for is_careful in (False, True):
    work(torch.cuda.Stream(), is_careful)
