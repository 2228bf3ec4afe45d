# @ gpus: 2
"""Copies between devices on streams of both, with autograd and the current device changed."""

import torch

torch.manual_seed(0)
host = torch.randn(6, 64)
weight = torch.randn(64, 64) / 8

losses, expected = [], []
upload, exchange = torch.cuda.Stream(0), torch.cuda.Stream(1)
there = weight.to("cuda:1").requires_grad_()
here = weight.clone().requires_grad_()
for row in host:
    with torch.cuda.stream(upload):
        x = row.pin_memory().to("cuda:0", non_blocking=True)
    with torch.cuda.device(1), torch.cuda.stream(exchange):
        exchange.wait_stream(upload)
        exchange.wait_stream(torch.cuda.default_stream(1))
        moved = x.to("cuda:1", non_blocking=True)
        loss = (moved @ there).square().mean()
        loss.backward()
    torch.cuda.default_stream(1).wait_stream(exchange)
    upload.wait_stream(exchange)
    losses.append(loss.item())
    loss = (row @ here).square().mean()
    loss.backward()
    expected.append(loss.item())
losses.append(there.grad.sum().to("cuda:0").item())
expected.append(here.grad.sum().item())
print("losses:", losses)
torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-4)
