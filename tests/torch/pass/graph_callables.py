"""A module in two graphs, one for each direction, beside parts that have none."""

import torch


def parts():
    torch.manual_seed(0)
    return torch.nn.Linear(8, 16), torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh())


first, second = (part.cuda() for part in parts())
host = torch.nn.Sequential(*parts())
second = torch.cuda.make_graphed_callables(second, (torch.randn(5, 16, device="cuda", requires_grad=True),))
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
own = torch.optim.SGD(host.parameters(), lr=0.1)
for _ in range(3):
    batch = torch.randn(5, 8)
    for network, steps, data in ((lambda x: second(first(x)), optimizer, batch.cuda()), (host, own, batch)):
        steps.zero_grad(set_to_none=True)
        loss = network(data).square().mean()
        loss.backward()
        steps.step()
        if data.is_cuda:
            on_device = loss.item()
    assert abs(on_device - loss.item()) < 1e-6
