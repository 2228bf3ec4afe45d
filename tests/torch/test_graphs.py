"""What fails in a capture, as on a GPU, and how launches go wrong."""

import json
import subprocess
import sys
from textwrap import dedent

import pytest
import ready_torch
from test_marks import LAUNCH, PREPARE

COMMAND = [sys.executable, "-m", "streamsan"]
BEGINNING = """
import sys
import traceback

import torch

x = torch.ones(64, device="cuda")
graph = torch.cuda.CUDAGraph()
torch.cuda.synchronize()
"""


def run(folder, text):
    script = folder / "script.py"
    script.write_text(BEGINNING + dedent(text))
    command = [*ready_torch.command(), "run", "--device", "virtual", "--no-check"]
    command += ["-o", "run.sstrace", str(script)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


NOT_PERMITTED = "operation not permitted when stream is capturing"
REFUSED = {
    "x.sum().item()": NOT_PERMITTED,
    "x.nonzero()": NOT_PERMITTED,
    "torch.allclose(x, x)": NOT_PERMITTED,
    "torch.isin(x, x)": NOT_PERMITTED,
    "torch.normal(x, x)": NOT_PERMITTED,
    "x.histc()": NOT_PERMITTED,
    "x.histc(bins=4, min=2, max=2)": NOT_PERMITTED,
    "x.index_fill(0, x.long(), x[0])": NOT_PERMITTED,
    "x.masked_fill_(x > 2, x[0])": NOT_PERMITTED,
    "torch.linspace(x[0], 3, 4, device='cuda')": NOT_PERMITTED,
    "x.cpu()": "Cannot copy between CPU and CUDA tensors during CUDA graph capture",
    "torch.cuda.synchronize()": NOT_PERMITTED,
    "torch.cuda.current_stream().query()": NOT_PERMITTED,
    "outside.synchronize()": NOT_PERMITTED,
    "torch.cuda.current_stream().wait_event(outside)": "dependency created on uncaptured work",
    "torch.cuda.current_stream().record_event().synchronize()": "last recorded in a capturing stream",
    "side.wait_stream(torch.cuda.current_stream()); on_side()": "capturing stream has unjoined work",
}
REFUSING = """
def on_side():
    with torch.cuda.stream(side):
        return x + 1


side = torch.cuda.Stream()
outside = torch.cuda.current_stream().record_event()
for number, call in enumerate(CALLS):
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            exec(call)
    except RuntimeError:
        print("case", number, traceback.format_exc().replace("\\n", " "))
    # The next capture, and work without one, go on.
    again = torch.cuda.CUDAGraph()
    with torch.cuda.graph(again):
        y = x + 1
    again.replay()
    assert y[0].item() == 2
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    done = run(tmp_path_factory.mktemp("refused"), f"CALLS = {list(REFUSED)}\n{REFUSING}")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("number", "call"), list(enumerate(REFUSED)))
def test_a_capture_refuses_what_a_gpu_refuses(refused, number, call):
    [line] = [line for line in refused.splitlines() if line.startswith(f"case {number} ")]
    assert REFUSED[call] in line


def test_an_operator_that_fails_in_a_launch_is_named(tmp_path):
    done = run(
        tmp_path,
        """
        table, row = torch.zeros(4, 4, device="cuda"), torch.zeros(1, dtype=torch.long, device="cuda")
        with torch.cuda.graph(graph):
            found = torch.nn.functional.embedding(row, table)
        row.fill_(9)
        graph.replay()
        """,
    )
    assert done.returncode != 0
    assert "CUDA error: unspecified launch failure" in done.stderr
    assert "embedding failed in the launch of a graph: index out of range" in done.stderr


def test_any_thread_may_launch(tmp_path):
    done = run(
        tmp_path,
        """
        import threading

        with torch.cuda.graph(graph):
            y = x * 2
        with torch.inference_mode(), torch.autocast("cpu"):
            thread = threading.Thread(target=graph.replay)
            x.fill_(4)
            torch.cuda.synchronize()
            thread.start()
            thread.join()
        torch.cuda.synchronize()
        assert y[0].item() == 8
        """,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_memory_that_went_back_to_the_system_is_an_illegal_access(tmp_path):
    done = run(
        tmp_path,
        """
        large = torch.ones(64 << 20, device="cuda")
        with torch.cuda.graph(graph):
            y = large[:4] * 2
        del large
        torch.cuda.empty_cache()
        graph.replay()
        """,
    )
    assert "an illegal memory access was encountered" in done.stderr


def test_a_call_that_is_not_modelled_is_named(tmp_path):
    done = run(
        tmp_path,
        """
        external = torch.cuda.Event(external=True)
        with torch.cuda.graph(graph):
            y = x * 2
            external.record()
        graph.replay()
        external.synchronize()
        assert y[0].item() == 2
        """,
    )
    assert done.returncode == 0, done.stderr
    command = [*COMMAND, "check", "--output-format", "json", "run.sstrace"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    report = json.loads(checked.stdout)
    assert "cudaEventRecordExternal" in json.dumps(report["gaps"]), report["gaps"]


def test_what_is_kept_goes_with_the_graph(tmp_path):
    done = run(
        tmp_path,
        """
        from streamsan.torch import graphs

        with torch.cuda.graph(graph):
            y = x * 2 + 1
        other = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(other):
            z = x * 3
        assert len(graphs._kept) == 3
        graph.reset()
        assert len(graphs._kept) == 1
        other.instantiate()
        other.replay()
        assert z[0].item() == 3
        del other
        assert not graphs._kept
        """,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_graph_is_drawn(tmp_path):
    done = run(
        tmp_path,
        """
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(graph):
            y = x * 2 + 1
        graph.debug_dump("graph.dot")
        """,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "graph.dot").read_text().count("->") == 1


def test_a_kernel_that_cannot_run_again_is_named_at_the_launch_too(program):
    recording = program.run(f"""{PREPARE}
graph = torch.cuda.CUDAGraph()
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    y.copy_(x)
    {LAUNCH}  # (capture)
graph.replay()  # (launch)
""")
    [captured] = recording.at("capture", "gap")
    assert [gap["detail"] for gap in recording.at("launch", "gap")] == [f"{captured['detail']}, in a graph"]
