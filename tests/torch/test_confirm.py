"""`run --confirm`: on the virtual device a copy that is late can show a wrong value; nothing else can."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_forward import forwarded, seen

START = """import torch
side = torch.cuda.Stream()
ones = torch.ones(1000).pin_memory()
x = torch.zeros(1000, device="cuda")
w = torch.ones(1000, requires_grad=True, device="cuda")
torch.cuda.synchronize()
"""

# What a program does after the start, and what is said of each of its errors.
PROGRAMS = {
    "upload read too early": (
        """
with torch.cuda.stream(side):
    x.copy_(ones, non_blocking=True)
y = x * 2
""",
        ["SS101 program.py:9 and program.py:10: confirmed: .* other bytes in 1 of 1 execution$"],
    ),
    "staging buffer filled again, in a loop": (
        """
for step in range(3):
    x.copy_(ones, non_blocking=True)
    ones.fill_(step)
""",
        ["SS302 program.py:9 and program.py:10: confirmed: .* other bytes in 3 of 3 executions$"],
    ),
    "a download overwritten by the host": (
        """
x += 5
ones.copy_(x, non_blocking=True)
ones.zero_()
""",
        ["SS302 program.py:9 and program.py:10: confirmed: .* other bytes in 1 of 1 execution$"],
    ),
    "after backward": (
        """
(w * 2).sum().backward()
with torch.cuda.stream(side):
    w.grad.copy_(ones, non_blocking=True)
print(w.grad.sum().item())
""",
        [
            "SS103 program.py:8 and program.py:10: not shown: the bytes were the same, but kernels",
            "SS101 program.py:10 and program.py:11: confirmed: .* other bytes in 1 of 1 execution$",
        ],
    ),
    "kernels only": (
        """
x.fill_(1)
with torch.cuda.stream(side):
    y = x * 2
""",
        ["SS101 program.py:8 and program.py:10: not shown: the bytes were the same, but kernels"],
    ),
    "seen by the output alone": (
        """
with torch.cuda.stream(side):
    x.copy_(ones, non_blocking=True)
    # Bytes past the first 4 MiB of a tensor are not looked at.
    z = torch.zeros(3 << 20, device="cuda")
    z[-1:].copy_(ones[:1], non_blocking=True)
print(z.clone()[-1].item())
""",
        ["SS101 .*program.py:13: ", "SS101 program.py:12 and program.py:13: confirmed: .*output, line 1"],
    ),
    "a graph's input is uploaded on another stream": (
        """
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
for step in range(2):
    torch.cuda.synchronize()
    ones.add_(1)
    with torch.cuda.stream(side):
        x.copy_(ones, non_blocking=True)
    graph.replay()
""",
        ["SS501 program.py:15 and program.py:16: confirmed: .* other bytes in 2 of 2 executions$"],
    ),
    "a graph's input is filled by a kernel": (
        """
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
    z = x * 3
torch.cuda.synchronize()
with torch.cuda.stream(side):
    x.fill_(3)
graph.replay()
""",
        ["SS501 program.py:14 and program.py:15: not shown: the bytes were the same, but kernels"],
    ),
    "a graph's result is read too early": (
        """
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
torch.cuda.synchronize()
graph.replay()
with torch.cuda.stream(side):
    z = y * 2
""",
        ["SS502 program.py:12 and program.py:14: not shown: the bytes were the same, but kernels"],
    ),
    "nodes of a graph without an edge": (
        """
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    y = x * 2
    with torch.cuda.stream(side):
        z = y * 2
    main.wait_stream(side)
torch.cuda.synchronize()
graph.replay()
""",
        ["SS101 program.py:12 and program.py:14: not shown: the bytes were the same, but kernels"],
    ),
    "random numbers": (
        """
with torch.cuda.stream(side):
    x.copy_(torch.rand(1000).pin_memory(), non_blocking=True)
y = x * 2
""",
        ["SS101 program.py:9 and program.py:10: not shown: the bytes differ from run to run"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_said(name: str, tmp_path: Path) -> None:
    program, expected = PROGRAMS[name]
    said = confirm(START + program, tmp_path)
    lines = re.findall(r"streamsan>   (SS.*)", said)
    assert len(lines) == len(expected), said
    for line, pattern in zip(lines, expected, strict=True):
        assert re.match(pattern, line), said


def test_without_an_error_there_is_nothing_to_confirm(tmp_path: Path) -> None:
    said = confirm(START + "x += 1\n", tmp_path, status=0)
    assert "nothing to confirm: there are no errors with two operations" in said


def test_the_output_of_the_further_runs_is_not_shown(tmp_path: Path) -> None:
    program = START + "print('once')\nwith torch.cuda.stream(side):\n    x += 1\ny = x * 2\n"
    assert confirm(program, tmp_path).count("once") == 1


def confirm(program: str, folder: Path, status: int = 66) -> str:
    path = folder / "program.py"
    path.write_text(program)
    command = [sys.executable, "-m", "streamsan", "run", "--device", "virtual", "--confirm"]
    ended = subprocess.run(
        [*command, "-o", str(folder / "run.sstrace"), str(path)], capture_output=True, text=True, cwd=folder
    )
    assert ended.returncode == status, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


GRAPH = """
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    main = torch.cuda.current_stream()
    side.wait_stream(main)
    y = x * 2
    with torch.cuda.stream(side):
        z = y + 1
    main.wait_stream(side)
torch.cuda.synchronize()
for _ in range(2):
    graph.replay()
    with torch.cuda.stream(side):
        total = z.sum()
    torch.cuda.synchronize()
"""


def operation(file: Path, line: int, label: str) -> dict[str, object]:
    return {"file": str(file), "line": line, "label": label, "backward": False, "launch": not label}


def rerun(folder: Path, late: int | None) -> tuple[list[dict], list]:
    """One further run as on a GPU, with the library that records in front of the virtual device."""
    program, results = folder / "program.py", folder / f"results-{late}"
    program.write_text(START + GRAPH)
    results.mkdir()
    lines = {
        text.strip(): number for number, text in enumerate(program.read_text().splitlines(), start=1) if text
    }
    multiply, add = lines["y = x * 2"], lines["z = y + 1"]
    findings = [
        {"first": (multiply, "aten::mul"), "second": (add, "aten::add")},
        {"first": (lines["graph.replay()"], ""), "second": (lines["total = z.sum()"], "aten::sum")},
    ]
    plan = {
        "findings": [
            {role: operation(program, *place) for role, place in finding.items()} | {"lifetime": False}
            for finding in findings
        ],
        "late": late,
        "ordered": late is None,
        "milliseconds": 50,
        "folder": str(results),
    }
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    trace = folder / f"run-{late}.sstrace"
    done = forwarded(program, trace, STREAMSAN_CONFIRM=str(path))
    assert done.returncode == 0, done.stderr
    (file,) = results.iterdir()
    return [json.loads(text) for text in file.read_text().splitlines()], [event for _, event in seen(trace)]


def spun(events: list[dict]) -> list[int]:
    """Streams on which the kernel that spins was launched."""
    return [event["stream"] for event in events if event.get("label") == "torch.cuda._sleep"]


def test_as_on_a_gpu_launches_and_nodes_are_looked_at_and_made_late(tmp_path: Path) -> None:
    told, events = rerun(tmp_path, None)
    counts = [line["executions"] for line in told if "executions" in line]
    assert counts == [{"first": 2, "second": 2}] * 2
    looks = {(line["finding"], line["what"], line["turn"]) for line in told if "bytes" in line}
    assert {(0, "second", turn) for turn in range(2)} <= looks
    assert {(1, what, turn) for what in ("first", "second", "after") for turn in range(2)} <= looks
    assert spun(events) == []
    # The kernel that spins is loaded first. Of nodes the capture has it once more, of launches each launch.
    for late, times in ((0, 2), (1, 3)):
        assert len(spun(rerun(tmp_path, late)[1])) == times


@pytest.mark.parametrize("chosen", [None, "LAZY"])
def test_on_a_gpu_kernels_are_loaded_first(tmp_path: Path, chosen: str | None) -> None:
    """The virtual device stands for NVIDIA's driver and runtime."""
    import streamsan

    libraries = Path(streamsan.__file__).parent / "lib"
    device = str(libraries / "libstreamsan_device.so")
    program = tmp_path / "program.py"
    note = "import os\nopen('seen', 'a').write(os.environ.get('CUDA_MODULE_LOADING', 'none') + ' ')\n"
    program.write_text(note + START + "with torch.cuda.stream(side):\n    x += 1\ny = x * 2\n")
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_MODULE_LOADING"}
    environment |= {
        "LD_PRELOAD": device,
        "LD_LIBRARY_PATH": str(libraries / "virtual"),
        "STREAMSAN_RUNTIME": device,
    }
    if chosen is not None:
        environment["CUDA_MODULE_LOADING"] = chosen
    command = [sys.executable, "-m", "streamsan", "run", "--device", "cuda", "--confirm", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 66, done.stderr
    assert (tmp_path / "seen").read_text().split() == [chosen or "none"] + [chosen or "EAGER"] * 3
    said = re.search(r"not shown: the bytes were the same in this run, which proves nothing(.*)", done.stderr)
    assert said is not None, done.stderr
    assert ("first launch" in said[1]) == (chosen is not None)
