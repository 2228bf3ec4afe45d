"""Offloaded KV cache: a layer is evicted on the default stream and fetched again on another one that never waits for it."""
import torch


class OffloadedCache:
    def __init__(self, layers):
        self.prefetch = torch.cuda.Stream()
        self.keys = [torch.zeros(2, 128, device="cuda") for _ in range(layers)]

    def evict(self, layer):
        self.keys[layer] = self.keys[layer].to("cpu", non_blocking=True)  # (1)

    def fetch(self, layer):
        with torch.cuda.stream(self.prefetch):
            self.keys[layer] = self.keys[layer].to("cuda", non_blocking=True)  # error: [SS101] after (1)

    def update(self, layer, key):
        torch.cuda.current_stream().wait_stream(self.prefetch)
        self.keys[layer].record_stream(torch.cuda.current_stream())
        self.keys[layer] = torch.cat([self.keys[layer], key])
        return self.keys[layer]


layers = 3
cache = OffloadedCache(layers)
torch.cuda.synchronize()
for layer in range(1, layers):
    cache.evict(layer)
total = torch.zeros((), device="cuda")
for _ in range(2):
    for layer in range(layers):
        following = (layer + 1) % layers
        cache.fetch(following)
        k = cache.update(layer, torch.ones(1, 128, device="cuda"))
        total += k.sum()
        cache.evict(layer)
torch.cuda.synchronize()
print(total.item())
