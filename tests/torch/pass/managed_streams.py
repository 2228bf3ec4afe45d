"""The four-stage service on managed streams: preprocess, infer, postprocess, copy out, over and over."""

import torch

import streamsan

graph = streamsan.StreamGraph(
    {"copy out": ["postprocess"], "postprocess": ["infer"], "infer": ["preprocess"], "preprocess": []}
)
assert graph.order == ["preprocess", "infer", "postprocess", "copy out"]
assert graph.to_svg().count("<rect") == 4 and '"infer" -> "postprocess";' in graph.to_dot()
weight = torch.randn(64, 64, device="cuda")
plain = weight.cpu()
results = []
for turn in range(20):
    batch = torch.full((64, 64), float(turn)).pin_memory()
    x = graph["preprocess"].run(lambda batch=batch: batch.to("cuda", non_blocking=True) / 2)
    y = graph["infer"].run(lambda x: x @ weight, x)
    z = graph["postprocess"].run(torch.sum, y, 1)
    # Dropped while the streams may still use them.
    del x, y
    results.append(graph["copy out"].run(lambda z: z.to("cpu", non_blocking=True), z))
graph["copy out"].synchronize()
for turn, result in enumerate(results):
    assert torch.allclose(result, (torch.full((64, 64), turn / 2) @ plain).sum(1), atol=1e-3)

# A tensor brings its stream along, declared or not, and leaves by `result`.
left, right = streamsan.ManagedStream("left"), streamsan.ManagedStream("right")
total = 0.0
for turn in range(10):
    made = left.run(torch.full, (1000,), float(turn), device="cuda")
    used = right.run(lambda value: value * 2, made)
    del made
    total += right.result(used).sum().item()
    del used
assert total == 2000.0 * sum(range(10))
# So does a view of it.
made = left.run(torch.ones, 1000, device="cuda")
part = right.run(lambda value: value * 2, made[:10])
assert right.result(part).sum().item() == 20.0

for wrong, said in (
    ({"infer": ["preproces"]}, "`preproces`, which is not in the graph"),
    ({"a": ["b"], "b": ["c"], "c": ["b"]}, "`b` after `c` after `b`"),
):
    try:
        streamsan.StreamGraph(wrong)
        raise AssertionError(wrong)
    except streamsan.GraphError as error:
        assert said in str(error), error
