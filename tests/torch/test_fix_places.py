"""Where a fix goes: to a line that can name the streams, also if the operation is in a function that cannot."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import ready_torch

ROOT = Path(__file__).resolve().parents[2]


COMMAND = [sys.executable, "-m", "streamsan"]


def findings(program, trace, folder):
    """Records a program in a folder and returns the findings of its trace."""
    run = [*ready_torch.command(), "run", "--device", "virtual", "--no-check", "-o", str(trace), str(program)]
    subprocess.run(run, cwd=folder, check=True, capture_output=True, timeout=300)
    check = [*COMMAND, "check", "--output-format", "json", str(trace)]
    done = subprocess.run(check, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return json.loads(done.stdout)["findings"]


def test_the_line_that_knows_the_streams(tmp_path):
    program = "examples/streaming/bad.py"
    lines = (ROOT / program).read_text().splitlines()
    fixes = [finding["fix"] for finding in findings(program, tmp_path / "run.sstrace", ROOT)]
    assert all(fix["verified"] for fix in fixes)
    # The read is in `double`, which knows no stream; its caller knows both.
    assert fixes[0]["insert"] == "compute.wait_stream(up)"
    assert lines[fixes[0]["line"] - 1].strip() == "y = function(x)"


INSIDE = """\
import torch


class Loader:
    def __init__(self):
        self.stream = torch.cuda.Stream()

    def load(self, host):
        with torch.cuda.stream(self.stream):
            return host.to("cuda", non_blocking=True)


host = torch.ones(1000).pin_memory()
loader = Loader()
twice = [loader.load(host) * 2]
"""


BACKWARD = """\
import torch

side = torch.cuda.Stream()


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            gradient.record_stream(side)
            result = gradient * 2
        return result


x = torch.randn(256, device="cuda", requires_grad=True)
Scale.apply(x * 3).sum().backward()
"""


@pytest.mark.parametrize(
    ("source", "line", "waited_for"),
    [(INSIDE, 10, "self.stream"), (BACKWARD, 16, "side")],
    ids=["call", "backward"],
)
def test_a_statement_that_issues_both_has_the_wait_inside(tmp_path, source, line, waited_for):
    program = tmp_path / "program.py"
    program.write_text(source)
    trace = tmp_path / "run.sstrace"
    (finding,) = findings(program, trace, tmp_path)
    assert finding["rule"] == "SS101"
    assert not finding["fix"]["verified"]
    text = subprocess.run(
        [*COMMAND, "check", str(trace)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    wait = f"make the default stream wait: torch.cuda.default_stream().wait_stream({waited_for})"
    words = " ".join(text.stdout.split())
    assert "help: (1) happens inside this line: after its call at " in words
    assert f"program.py:{line}, {wait}" in words


NAMES = {
    # The parameter is the other stream in the second call; who calls knows both.
    "stream_of_each_call.py": ("two.wait_stream(one)", "work(two, 2.0)"),
    # The parameter is still the same stream after the line's allocation.
    "stream_of_first_call.py": ("torch.cuda.default_stream().wait_stream(stream)", "y = x + 1"),
    # The parameter is the same stream in all calls.
    "stream_of_all_calls.py": ("torch.cuda.default_stream().wait_stream(side)", "total = x.sum()"),
    # The variable is the other stream in the second turn; the list does not change.
    "streams_take_turns.py": ("streams[1].wait_stream(streams[0])", "x.add_(1)"),
}


@pytest.mark.parametrize("script", NAMES)
def test_a_name_is_used_where_it_means_that_stream(tmp_path, script):
    program = ROOT / "tests" / "torch" / "fail" / script
    (finding,) = findings(program, tmp_path / "run.sstrace", tmp_path)
    code, line = NAMES[script]
    fix = finding["fix"]
    assert (fix["insert"], fix["verified"]) == (code, True)
    source = program.read_text().splitlines()
    assert source[fix["line"] - 1].strip().startswith(line)
    # Pasted, it does what the report says.
    indent = source[fix["line"] - 1][: -len(source[fix["line"] - 1].lstrip())]
    source.insert(fix["line"] - 1, indent + fix["insert"])
    mended = tmp_path / "mended.py"
    mended.write_text("\n".join(source))
    run = [*ready_torch.command(), "run", "--device", "virtual"]
    run += ["-o", str(tmp_path / "mended.sstrace"), str(mended)]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_code_goes_before_statements(tmp_path):
    program = ROOT / "tests" / "torch" / "fail" / "statements_over_lines.py"
    source = program.read_text().splitlines()
    fixes = [finding["fix"] for finding in findings(program, tmp_path / "run.sstrace", tmp_path)]
    places = {(fix["line"], fix["insert"]) for fix in fixes if fix["insert"] is not None}
    for line, code in sorted(places, reverse=True):
        indent = source[line - 1][: -len(source[line - 1].lstrip())]
        source.insert(line - 1, indent + code)
    mended = tmp_path / "mended.py"
    mended.write_text("\n".join(source))
    # No line comes before each test of a condition.
    (left,) = findings(mended, tmp_path / "mended.sstrace", tmp_path)
    notes = " ".join(left["notes"])
    assert left["fix"]["insert"] is None
    assert "each time before the expression at mended.py:" in notes
    assert "torch.cuda.default_stream().wait_stream(side)" in notes
