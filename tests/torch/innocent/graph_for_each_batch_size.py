"""Inference with one graph for each batch size; they share memory, and requests are padded to the next size."""

import torch
from torch import nn

SIZES = (8, 4, 2, 1)


def make():
    torch.manual_seed(0)
    layers = [nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 4)]
    return nn.Sequential(nn.Embedding(32, 16), *layers).eval()


class Runner:
    def __init__(self, model):
        self.model = model
        self.tokens = torch.zeros(max(SIZES), dtype=torch.long, device="cuda")
        self.graphs, self.outputs = {}, {}
        self.stream = torch.cuda.Stream()
        pool = None
        for size in SIZES:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self.model(self.tokens[:size])
            torch.cuda.current_stream().wait_stream(self.stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool, stream=self.stream):
                self.outputs[size] = self.model(self.tokens[:size])
            pool = graph.pool()
            self.graphs[size] = graph

    def __call__(self, tokens):
        size = min(size for size in SIZES if size >= len(tokens))
        self.tokens.zero_()
        self.tokens[: len(tokens)].copy_(tokens, non_blocking=True)
        self.graphs[size].replay()
        return self.outputs[size][: len(tokens)]


@torch.inference_mode()
def answers(model, requests):
    return [model(request).square().mean().item() for request in requests]


generator = torch.Generator().manual_seed(3)
requests = [torch.randint(32, (length,), generator=generator) for length in (3, 8, 1, 5, 2, 4)]
with torch.inference_mode():
    runner = Runner(make().cuda())
losses = answers(runner, [request.pin_memory() for request in requests])
print("losses:", losses)
torch.testing.assert_close(losses, answers(make(), requests), rtol=1e-4, atol=1e-6)
