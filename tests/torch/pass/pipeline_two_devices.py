#@ gpus: 2
"""A result on another device is refused: the download would not wait for that device's streams."""

import torch

import streamsan

items = [torch.full((4,), float(item)) for item in range(6)]
try:
    streamsan.pipeline(lambda x: x.to("cuda:1") * 2, items)
    raise AssertionError("nothing was raised")
except streamsan.PipelineError as error:
    assert len(error.errors) == 6 and "a tensor on cuda:1, the pipeline is on cuda:0" in str(error)
back = streamsan.pipeline(lambda x: (x.to("cuda:1") * 2).to("cuda:0"), items, device="cuda:0")
assert [result[0].item() for result in back] == [2.0 * item for item in range(6)]
