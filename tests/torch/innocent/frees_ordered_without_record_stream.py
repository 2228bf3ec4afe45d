"""Parameters gathered on a side stream and freed without record_stream, as FSDP2 does it.

The gathered tensor is kept with an event of its last use; the stream that allocates waits for
that event before the reference goes.
"""

import torch
from torch import nn


class Gathered:
    """Weights are sharded; the whole of a layer exists on the device only around its use."""

    def __init__(self, weights):
        self.shards = [list(weight.chunk(4)) for weight in weights]
        self.stream = torch.cuda.Stream()
        self.kept = None

    def gather(self, index):
        self.release()
        with torch.cuda.stream(self.stream):
            whole = torch.cat(self.shards[index])
        return whole, self.stream.record_event()

    def release(self):
        if self.kept is not None:
            _tensor, event = self.kept
            self.stream.wait_event(event)
            self.kept = None


def run(weights, x):
    layers = Gathered(weights)
    layers.stream.wait_stream(torch.cuda.current_stream())
    upcoming = layers.gather(0)
    for index in range(len(weights)):
        weight, ready = upcoming
        torch.cuda.current_stream().wait_event(ready)
        x = torch.tanh(nn.functional.linear(x, weight))
        used = torch.cuda.current_stream().record_event()
        if index + 1 < len(weights):
            upcoming = layers.gather(index + 1)
        else:
            upcoming = None
            layers.release()
        layers.kept = (weight, used)
        del weight
    layers.release()
    return x


torch.manual_seed(0)
weights = [torch.randn(32, 32) / 6 for _ in range(6)]
losses, expected = [], []
for _ in range(3):
    inputs = torch.randn(8, 32)
    losses.append(run([weight.cuda() for weight in weights], inputs.cuda()).square().mean().item())
    for weight in weights:
        inputs = torch.tanh(nn.functional.linear(inputs, weight))
    expected.append(inputs.square().mean().item())
print("losses:", losses)
torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-6)
