"""Copies done late show a missing wait as a wrong value, and change nothing where the waits are."""

import re
import subprocess
from pathlib import Path

import pytest
import ready_torch

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "evidence.md").read_text()
PASS = sorted((Path(__file__).parent / "pass").glob("*.py"))

START = """
import torch, streamsan
side = torch.cuda.Stream()
ones = torch.ones(1000).pin_memory()
x = torch.zeros(1000, device="cuda")
side.wait_stream(torch.cuda.current_stream())
"""

# What a program does, and whether its results depend on when copies are done.
PROGRAMS = {
    "upload without a wait": (
        """
with torch.cuda.stream(side):
    x.copy_(ones, non_blocking=True)
print(x.sum().item())
""",
        True,
    ),
    "upload with a wait": (
        """
with torch.cuda.stream(side):
    x.copy_(ones, non_blocking=True)
torch.cuda.current_stream().wait_stream(side)
print(x.sum().item())
""",
        False,
    ),
    "upload with an event of a third stream": (
        """
third, event, other = torch.cuda.Stream(), torch.cuda.Event(), torch.cuda.Event()
with torch.cuda.stream(side):
    x.copy_(ones, non_blocking=True)
    event.record()
third.wait_event(event)
other.record(third)
torch.cuda.current_stream().wait_event(other)
print(x.sum().item())
""",
        False,
    ),
    "an early event": (
        """
event = torch.cuda.Event()
event.record(side)
with torch.cuda.stream(side):
    x.copy_(ones, non_blocking=True)
torch.cuda.current_stream().wait_event(event)
print(x.sum().item())
""",
        True,
    ),
    "download without a wait": (
        """
x += 3
host = torch.zeros(1000).pin_memory()
host.copy_(x, non_blocking=True)
print(host.sum().item())
""",
        True,
    ),
    "download with a wait of the host": (
        """
x += 3
host = torch.zeros(1000).pin_memory()
host.copy_(x, non_blocking=True)
torch.cuda.current_stream().synchronize()
print(host.sum().item())
""",
        False,
    ),
    "download that is polled for": (
        """
x += 3
host = torch.zeros(1000).pin_memory()
host.copy_(x, non_blocking=True)
done = torch.cuda.Event()
done.record()
while not done.query():
    pass
print(host.sum().item())
""",
        False,
    ),
    "the source is overwritten too early": (
        """
x.copy_(ones, non_blocking=True)
ones.zero_()
print(x.sum().item())
""",
        True,
    ),
    "an ordinary source may be overwritten": (
        """
plain = torch.ones(1000)
x.copy_(plain, non_blocking=True)
plain.zero_()
print(x.sum().item())
""",
        False,
    ),
    "page-locked memory that goes back to its allocator": (
        """
total = torch.zeros((), device="cuda")
for step in range(20):
    total += torch.full((1000,), float(step)).pin_memory().to("cuda", non_blocking=True).sum()
print(total.item())
""",
        False,
    ),
    "a copy that follows another one": (
        """
y = torch.empty(1000).pin_memory()
with torch.cuda.stream(side):
    x.copy_(ones, non_blocking=True)
    y.copy_(x, non_blocking=True)
side.synchronize()
print(y.sum().item())
""",
        False,
    ),
}


def run(*arguments, folder, status, command=ready_torch.PLAIN):
    done = subprocess.run(
        [*command, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_depend_on_copies_only_where_a_wait_is_missing(name, tmp_path):
    source, depends = PROGRAMS[name]
    (tmp_path / "program.py").write_text(START + source)
    done = run("run", "--one-stream", "program.py", folder=tmp_path, status=66 if depends else 0)
    assert ("output, line 1: " in done.stderr) == depends, done.stderr
    assert ("no difference shown" in done.stderr) != depends, done.stderr
    # The checker, which knows nothing of values, says the same.
    assert ("error[SS" in done.stderr) == depends, done.stderr


def test_what_differs_by_itself_is_not_counted(tmp_path):
    (tmp_path / "program.py").write_text(
        START + 'import os\nprint(os.urandom(8).hex())\nstreamsan.watch(x + os.getpid(), "x")\n'
    )
    done = run("run", "--one-stream", "program.py", folder=tmp_path, status=0)
    assert "2 differences are not counted" in done.stderr, done.stderr


def test_watch_sees_what_the_current_stream_sees_and_is_not_recorded(tmp_path):
    (tmp_path / "program.py").write_text(
        START
        + """
with torch.cuda.stream(side):
    x.copy_(ones, non_blocking=True)
    assert streamsan.watch(x, "x") is x
streamsan.watch(torch.zeros(0), "empty")
streamsan.watch(torch.ones(3, dtype=torch.complex64), "complex")
streamsan.watch(torch.ones(3).to_sparse(), "sparse")
streamsan.watch(ones, "host")
"""
    )
    done = run("run", "--one-stream", "program.py", folder=tmp_path, status=0)
    assert "compared exit status, output and 5 watched values" in done.stderr, done.stderr
    assert "no difference shown" in done.stderr, done.stderr


@pytest.mark.parametrize("script", PASS, ids=lambda path: path.stem)
def test_programs_without_hazards_run_with_late_copies(script, tmp_path):
    # Their own assertions are about values.
    options = ["--device-count", "2"] if "two_devices" in script.stem else []
    words = ["run", "--delay-copies", "--no-check", *options, str(script)]
    run(*words, folder=tmp_path, status=0, command=ready_torch.command())


def test_the_commands_of_the_page(tmp_path):
    (tmp_path / "train.py").write_text(re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1])
    commands = [
        line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
    ]
    said = {}
    for command in commands:
        words = command.split()
        assert words[0] == "streamsan"
        status = {"log": 0, "check": 1, "run": 66}[words[1]]
        said[command] = run(*words[1:], folder=tmp_path, status=status)
    assert (tmp_path / "report.html").is_file() and (tmp_path / "run.perfetto.json").is_file()
    log, one_stream, confirmed = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    for option, shown in (("--one-stream", one_stream), ("--confirm", confirmed)):
        for line in shown.splitlines():
            assert line in said[f"streamsan run {option} train.py"].stderr

    def shape(text):
        """Without what differs from machine to machine."""
        return [re.sub(r"0x[0-9a-f]+|#\d+|b\d+| +", " ", line).strip() for line in text.splitlines()]

    assert set(shape(log)) <= set(shape(said["streamsan log run.sstrace"].stdout))
