"""A model larger than the GPU: weights are uploaded while the layer before them runs, into two slots.

streamsan run --device-memory 48MiB examples/layer_streaming/bad.py
"""

import torch

WIDTH = 1024


def main():
    torch.manual_seed(0)
    layers = [(torch.eye(WIDTH) + 0.001 * torch.randn(WIDTH, WIDTH)).pin_memory() for _ in range(20)]
    upload = torch.cuda.Stream()
    slots = [torch.empty(WIDTH, WIDTH, device="cuda") for _ in range(2)]
    ready = [torch.cuda.Event() for _ in slots]
    x = torch.ones(8, WIDTH, device="cuda")
    torch.cuda.synchronize()

    def start(index):
        with torch.cuda.stream(upload):
            slots[index % 2].copy_(layers[index], non_blocking=True)
        ready[index % 2].record(upload)

    start(0)
    for index in range(len(layers)):
        if index + 1 < len(layers):
            # The layer before the last one may still be reading this slot.
            start(index + 1)
        torch.cuda.current_stream().wait_event(ready[index % 2])
        x = torch.relu(x @ slots[index % 2])
    print("mean:", x.mean().item())


if __name__ == "__main__":
    main()
