"""Streams that are an attribute of an attribute, or of a class; memory that a function gives back when it returns."""

import torch


class Copies:
    def __init__(self):
        self.stream = torch.cuda.Stream()


class Engine:
    def __init__(self):
        self.copies = Copies()

    def upload(self, host):
        with torch.cuda.stream(self.copies.stream):
            return host.to("cuda", non_blocking=True)  # error: [SS202] after (2)  # (1)

    def step(self, host):
        x = self.upload(host)
        return x * 2  # error: [SS101] after (1)  # (2)


engine = Engine()
kept = [engine.step(torch.full((256,), float(step)).pin_memory()) for step in range(3)]
torch.cuda.synchronize()


class Server:
    downloads = torch.cuda.Stream()

    def __init__(self):
        self.results = torch.empty(4, 8, pin_memory=True)

    def answer(self, output):
        self.downloads.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.downloads):
            self.results.copy_(output, non_blocking=True)  # (3)
        return self.results.clone()  # error: [SS301] after (3)


output = torch.ones(4, 8, device="cuda")
Server().answer(output)
torch.cuda.synchronize()
