"""The shape of pytorch #180665: reduce-scatter output offloaded on another stream and freed on its own."""

import torch

reduce_scatter, all_reduce = torch.cuda.Stream(), torch.cuda.Stream()
gradients = [torch.full((1 << 16,), float(layer), device="cuda") for layer in range(2)]
host = torch.zeros(2, 1 << 16).pin_memory()
torch.cuda.synchronize()
for layer, gradient in enumerate(gradients):
    with torch.cuda.stream(reduce_scatter):
        shard = gradient * 0.5  # error: [SS202] after (1)
    all_reduce.wait_stream(reduce_scatter)
    with torch.cuda.stream(all_reduce):
        host[layer].copy_(shard, non_blocking=True)  # (1)
    del shard
torch.cuda.synchronize()
