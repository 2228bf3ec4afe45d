"""The garbage collector frees a tensor that another stream still reads."""

import gc

import torch

side = torch.cuda.Stream()


class Node:
    def __init__(self):
        self.self = self
        self.data = torch.ones(1 << 18, device="cuda")


gc.disable()
node = Node()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = node.data.sum()  # (1)
del node
gc.collect()
z = torch.zeros(1 << 18, device="cuda")  # error: [SS202] after (1)
torch.cuda.synchronize()
