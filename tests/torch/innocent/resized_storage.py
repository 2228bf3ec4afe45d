"""The storage of a weight is given up and filled again around its use, as FSDP1 does it."""

import torch

torch.manual_seed(0)
shards = [torch.randn(64, 64) / 8 for _ in range(4)]
inputs = torch.randn(8, 64)

stream = torch.cuda.Stream()
pinned = [shard.pin_memory() for shard in shards]
with torch.cuda.stream(stream):
    weights = [torch.empty(64, 64, device="cuda") for _ in shards]
size = weights[0].untyped_storage().nbytes()
for weight in weights:
    weight.untyped_storage().resize_(0)

losses, expected = [], []
for step in range(3):
    hidden = (inputs + step).cuda()
    for weight, host in zip(weights, pinned, strict=True):
        with torch.cuda.stream(stream):
            weight.untyped_storage().resize_(size)
            weight.copy_(host, non_blocking=True)
        torch.cuda.current_stream().wait_stream(stream)
        hidden = torch.tanh(hidden @ weight)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            weight.untyped_storage().resize_(0)
    losses.append(hidden.square().mean().item())
    hidden = inputs + step
    for shard in shards:
        hidden = torch.tanh(hidden @ shard)
    expected.append(hidden.square().mean().item())
print("losses:", losses)
torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-6)
