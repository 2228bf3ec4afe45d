"""`streamsan run --live` with real programs."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

PROGRAM = """
import sys, time
import torch
side = torch.cuda.Stream()
x = torch.ones(1024, device="cuda")
side.wait_stream(torch.cuda.current_stream())
x.fill_(1)
with torch.cuda.stream(side):
    y = x + 1  # (2)
for _ in range(int(sys.argv[1])):
    torch.cuda.synchronize()
    time.sleep(0.1)
print("the program ends", file=sys.stderr)
"""


def run(folder, turns, *options):
    (folder / "train.py").write_text(PROGRAM)
    command = [
        sys.executable,
        "-m",
        "streamsan",
        "run",
        *options,
        "-o",
        "run.sstrace",
        "train.py",
        str(turns),
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)


def test_a_finding_is_said_before_the_program_ends(tmp_path):
    done = run(tmp_path, 30, "--live")
    assert done.returncode == 66, done.stderr
    lines = done.stderr.splitlines()
    [finding] = [index for index, line in enumerate(lines) if line.startswith("streamsan> train.py:9:")]
    assert "error[SS101] unordered read-after-write on `x`: default" in lines[finding]
    assert lines[finding + 1].startswith(
        "streamsan>   fix, not verified yet: before train.py:9, make `side` wait"
    )
    [reported] = [index for index, line in enumerate(lines) if line.startswith("error[SS101]: ")]
    assert finding < lines.index("the program ends") < reported


def test_the_program_is_ended_at_the_first_error(tmp_path):
    done = run(tmp_path, 2000, "--halt-on-error")
    assert done.returncode == 66, done.stderr
    assert "the program ends" not in done.stderr
    assert "streamsan> ending the program at the first error (--halt-on-error)" in done.stderr
    assert "\nerror[SS101]: " in done.stderr
