"""`run --confirm`: on the virtual device a copy that is late can show a wrong value; nothing else can."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_operations_in_graphs_are_not_tried(tmp_path: Path) -> None:
    program = """
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2
torch.cuda.synchronize()
with torch.cuda.stream(side):
    x.fill_(3)
graph.replay()
"""
    said = confirm(START + program, tmp_path)
    assert re.search(r"SS501 program.py:\d+ and program.py:\d+: not tried: operations in graphs", said), said
    assert "confirming" not in said
