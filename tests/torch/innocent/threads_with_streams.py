"""Threads, each with a stream of its own, hand tensors over with events."""

import queue
import threading

import torch
from torch import nn

DONE = object()


def load(host, output):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for part in host:
            tensor = part.pin_memory().to("cuda", non_blocking=True)
            output.put((tensor, stream.record_event()))
    output.put(DONE)


def augment(source, output):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        while (item := source.get()) is not DONE:
            tensor, ready = item
            stream.wait_event(ready)
            tensor.record_stream(stream)
            output.put((tensor.flip(0) * 2, stream.record_event()))
    output.put(DONE)


def uploaded(host):
    first, second = queue.Queue(maxsize=2), queue.Queue(maxsize=2)
    threads = [
        threading.Thread(target=load, args=(host, first)),
        threading.Thread(target=augment, args=(first, second)),
    ]
    for thread in threads:
        thread.start()
    while (item := second.get()) is not DONE:
        tensor, ready = item
        ready.wait()
        tensor.record_stream(torch.cuda.current_stream())
        yield tensor
    for thread in threads:
        thread.join()


def train(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    host = [torch.randn(32, 16) for _ in range(6)]
    losses = []
    for batch in uploaded(host) if device == "cuda" else [part.flip(0) * 2 for part in host]:
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
