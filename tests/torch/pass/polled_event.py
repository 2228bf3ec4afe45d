"""Polling an event until it is done is a wait."""

import time

import torch

copy = torch.cuda.Stream()
x = torch.ones(1024, device="cuda")
h = torch.empty(1024, pin_memory=True)
copy.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(copy):
    h.copy_(x, non_blocking=True)
    done = copy.record_event()
while not done.query():
    time.sleep(0.001)
print(h.sum())
