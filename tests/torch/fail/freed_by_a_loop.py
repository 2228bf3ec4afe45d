"""A loop's header drops the last batch, which the default stream still reads; only the loader knows its stream."""

import torch


class Loader:
    def __init__(self, host):
        self.host = host
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        for host in self.host:
            with torch.cuda.stream(self.stream):
                batch = host.to("cuda", non_blocking=True)  # error: [SS202] after (1)
            torch.cuda.default_stream().wait_stream(self.stream)
            yield batch
            del batch


totals = torch.zeros(4, device="cuda")
torch.cuda.synchronize()
for step, batch in enumerate(Loader([torch.full((4096,), float(step)).pin_memory() for step in range(4)])):
    totals[step] = batch.mean()  # (1)
torch.cuda.synchronize()
