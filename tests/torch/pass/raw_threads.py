"""Threads that `threading.Thread` did not start compute as others do, and so do those older than torch."""

import _thread
import threading

start_later, done = threading.Event(), threading.Semaphore(0)


def add(amount, *, times=1):
    start_later.wait()
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        torch.cuda.current_stream().wait_event(ready)
        for _ in range(times):
            x.add_(amount)
        torch.cuda.current_stream().synchronize()
    done.release()


# Each waits for the one before, as all of them change `x`.
threading.Thread(target=add, args=(1.0,)).start()
plain = _thread.start_new_thread

import torch

x = torch.zeros(1024, device="cuda")
ready = torch.cuda.Event()
ready.record()
start_later.set()
done.acquire()
for start in (plain, _thread.start_new_thread, _thread.start_new):
    start(add, (2.0,), {"times": 3})
    done.acquire()
assert x.sum().item() == 1024 * 19.0
