"""Functions that `torch.compile(mode="reduce-overhead")` turns into graphs: their inputs are freed in the capture, and
filled before each launch."""

import pytest
from recorded import findings, run

SOURCE = """\
import torch

torch.manual_seed(0)
main = torch.cuda.current_stream()
load, read = torch.cuda.Stream(), torch.cuda.Stream()
weight = torch.randn(256, 256, device="cuda", requires_grad={training})


def work(x):
    y = torch.relu(x @ weight)
    return (y * 2).sum(1), y.mean()


compiled = torch.compile(work, mode="reduce-overhead")
total = 0.0
for step in range(8):
    torch.compiler.cudagraph_mark_step_begin()
    with torch.cuda.stream(load):
        x = torch.full((64, 256), step / 8, pin_memory=True).cuda(non_blocking=True)
    main.wait_stream(load)
    {body}
    x.record_stream(main)
    read.wait_stream(main)
    with torch.cuda.stream(read):
        seen = rows[:4].detach().clone()
    main.wait_stream(read)
    total += seen.sum().item() + mean.item()
    seen.record_stream(main)
    del x, rows, mean, seen
    {after}
print(total != 0)
"""

INFERENCE = """\
with torch.no_grad():
        rows, mean = compiled(x)"""

TRAINING = """\
rows, mean = compiled(x)
    mean.backward()"""

LEARN = """\
with torch.no_grad():
        weight -= 0.01 * weight.grad
    weight.grad = None"""


@pytest.mark.parametrize(
    ("training", "body", "after"),
    [(False, INFERENCE, "pass"), (True, TRAINING, LEARN)],
    ids=["inference", "training"],
)
def test_a_compiled_function_in_graphs_is_clean(tmp_path, training, body, after):
    source = SOURCE.format(training=training, body=body, after=after)
    done, trace = run(tmp_path, source)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"
    from streamsan import _core

    kinds = [event["kind"] for event in _core.read_events(str(trace))]
    assert kinds.count("graph_launch") >= 4, "it runs as a graph"
    assert findings(trace)[0] == []
