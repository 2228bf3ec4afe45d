import _thread
import threading

import torch

done = threading.Event()
stream = torch.cuda.Stream()
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()


def add():
    with torch.cuda.stream(stream):
        x.add_(1)  # (1)
    done.set()


_thread.start_new_thread(add, ())
done.wait()
y = x * 2  # error: [SS101] after (1)
assert y.sum().item() == 2048.0
