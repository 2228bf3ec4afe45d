"""Streams with priorities, streams made from a handle, queries, timing."""

import time

import torch

torch.manual_seed(0)
weight = torch.randn(64, 64) / 8
host = torch.randn(64, 64)
expected = torch.tanh(torch.tanh(host @ weight) @ weight).square().mean()

low, high = torch.cuda.Stream.priority_range()
urgent, patient = torch.cuda.Stream(priority=high), torch.cuda.Stream(priority=low)
assert urgent.priority == high
same = torch.cuda.ExternalStream(patient.cuda_stream)
assert same.cuda_stream == patient.cuda_stream

start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
losses = []
for _ in range(3):
    start.record()
    x, w = host.cuda(), weight.cuda()
    urgent.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(urgent):
        hidden = torch.tanh(x @ w)
    same.wait_event(urgent.record_event())
    with torch.cuda.stream(same):
        result = torch.tanh(hidden @ w).square().mean()
    while not patient.query():
        time.sleep(0.001)
    losses.append(result.item())

    done = torch.cuda.Event()
    with torch.cuda.stream(patient):
        later = hidden.sum()
        done.record()
    while not done.query():
        time.sleep(0.001)
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    assert abs(later.item() - hidden.sum().item()) < 1e-3

print("losses:", losses)
torch.testing.assert_close(torch.tensor(losses), expected.expand(3), rtol=1e-4, atol=1e-6)
