"""The per-thread default stream by its number: ordered with the legacy default stream, and by events like others."""

import threading

import torch

per_thread = torch.cuda.ExternalStream(2)
side = torch.cuda.Stream()
x = torch.zeros(256, device="cuda")
with torch.cuda.stream(per_thread):
    x.add_(1)
side.wait_stream(per_thread)
with torch.cuda.stream(side):
    x.mul_(2)
per_thread.wait_stream(side)
with torch.cuda.stream(per_thread):
    x.add_(1)
x.add_(1)
host = torch.zeros(256, pin_memory=True)


def download():
    own = torch.cuda.ExternalStream(2)
    with torch.cuda.stream(own):
        host.copy_(x, non_blocking=True)
    own.synchronize()


thread = threading.Thread(target=download)
thread.start()
thread.join()
assert host.sum().item() == 4 * 256
