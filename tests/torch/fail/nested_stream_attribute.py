"""The stream is an attribute of an attribute; its memory goes back when the function that still reads it returns."""

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
