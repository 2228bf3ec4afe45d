"""A whole training step in a graph: the losses are those of the same steps without one, on the host."""

import torch

INPUT = torch.Generator().manual_seed(5)


def model():
    torch.manual_seed(0)
    layers = torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4)
    return torch.nn.Sequential(*layers)


def step(network, optimizer, x, target):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(network(x), target)
    loss.backward()
    optimizer.step()
    return loss


network, reference = model().cuda(), model()
optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2, capturable=True)
own = torch.optim.AdamW(reference.parameters(), lr=1e-2)
x, target = torch.randn(5, 8, generator=INPUT).cuda(), torch.randn(5, 4, generator=INPUT).cuda()
warm_up = torch.cuda.Stream()
warm_up.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm_up):
    for _ in range(3):
        step(network, optimizer, x, target)
torch.cuda.current_stream().wait_stream(warm_up)
for _ in range(3):
    step(reference, own, x.cpu(), target.cpu())
before = network[0].weight.detach().clone()
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = step(network, optimizer, x, target)
assert torch.equal(before, network[0].weight), "a capture computes nothing"
for _ in range(4):
    batch = torch.randn(5, 8, generator=INPUT), torch.randn(5, 4, generator=INPUT)
    x.copy_(batch[0])
    target.copy_(batch[1])
    graph.replay()
    expected = step(reference, own, *batch)
    torch.testing.assert_close(loss.cpu(), expected.detach(), rtol=1e-5, atol=1e-6)
torch.testing.assert_close(network[0].weight.cpu(), reference[0].weight, rtol=1e-5, atol=1e-6)
