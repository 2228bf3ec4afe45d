"""CUDA graphs on a GPU: capture, executables and launches are in the trace, and are judged."""

from recorded import findings, run

SOURCE = """\
import torch

side = torch.cuda.Stream()
static = torch.zeros(1 << 20, device="cuda")
warm = static * 2
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    out = static * 2
with torch.cuda.stream(side):
    static.fill_(1)
{wait}
graph.replay()
torch.cuda.synchronize()
"""


def kinds(trace):
    from streamsan import _core

    return [event["kind"] for event in _core.read_events(str(trace))]


def test_an_input_that_is_overwritten_is_found(tmp_path):
    done, trace = run(tmp_path, SOURCE.format(wait=""))
    assert done.returncode == 0, done.stderr
    seen = kinds(trace)
    for kind in ("capture_begin", "capture_end", "graph_instantiate", "graph_launch"):
        assert seen.count(kind) == 1, kind
    found, gaps = findings(trace)
    assert (found, gaps) == ([("SS501", 13)], [])


def test_a_wait_makes_it_clean(tmp_path):
    done, trace = run(tmp_path, SOURCE.format(wait="torch.cuda.current_stream().wait_stream(side)"))
    assert done.returncode == 0, done.stderr
    assert findings(trace) == ([], [])
