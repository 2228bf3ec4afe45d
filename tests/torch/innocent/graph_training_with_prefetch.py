"""A training step in a graph; a side stream uploads the next batch, which is copied into the graph's input."""

import torch
from torch import nn


def batches():
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(16, 12, generator=generator) for _ in range(6)]


def make(device):
    torch.manual_seed(0)
    layers = (nn.Linear(12, 24), nn.LayerNorm(24), nn.GELU(), nn.Linear(24, 1))
    model = nn.Sequential(*layers).to(device)
    return model, torch.optim.Adam(model.parameters(), lr=0.01, capturable=device == "cuda", foreach=True)


def step(model, optimizer, batch):
    optimizer.zero_grad(set_to_none=True)
    loss = model(batch).square().mean()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.detach()


def on_device():
    model, optimizer = make("cuda")
    warm_up, upload = torch.cuda.Stream(), torch.cuda.Stream()
    static = torch.zeros(16, 12, device="cuda")
    kept = [tensor.detach().clone() for tensor in model.state_dict().values()]
    warm_up.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm_up):
        for _ in range(3):
            step(model, optimizer, static)
    torch.cuda.current_stream().wait_stream(warm_up)
    with torch.no_grad():
        # The state of the first step, in the same memory: the graph has its addresses.
        for tensor, old in zip(model.state_dict().values(), kept, strict=True):
            tensor.copy_(old)
        for state in optimizer.state.values():
            for value in state.values():
                value.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(model, optimizer, static)

    main, losses = torch.cuda.current_stream(), []

    def prefetch(batch):
        with torch.cuda.stream(upload):
            return batch.pin_memory().to("cuda", non_blocking=True)

    waiting = batches()
    batch = prefetch(waiting.pop(0))
    while batch is not None:
        main.wait_stream(upload)
        static.copy_(batch)
        batch.record_stream(main)
        batch = prefetch(waiting.pop(0)) if waiting else None
        graph.replay()
        losses.append(loss.clone())
    return torch.stack(losses).tolist()


def on_host():
    model, optimizer = make("cpu")
    return [step(model, optimizer, batch).item() for batch in batches()]


losses = on_device()
print("losses:", losses)
torch.testing.assert_close(losses, on_host(), rtol=1e-4, atol=1e-6)
