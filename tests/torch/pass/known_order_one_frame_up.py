"""The shape of Megatron-LM #5788: no `record_stream`, and none needed; the caller makes the stream wait."""

import torch


class Gather:
    def __init__(self):
        self.stream = torch.cuda.Stream()

    def gather(self, shard):
        with torch.cuda.stream(self.stream):
            return shard.repeat(4)

    def step(self, shard, inputs):
        self.stream.wait_stream(torch.cuda.current_stream())
        full = self.gather(shard)
        torch.cuda.current_stream().wait_stream(self.stream)
        return inputs * full


gather = Gather()
shard = torch.ones(1 << 14, device="cuda")
inputs = torch.ones(1 << 16, device="cuda")
torch.cuda.synchronize()
for _ in range(3):
    inputs = gather.step(shard, inputs)
torch.cuda.synchronize()
