"""A script that is run with a torch that is loaded already is recorded as one that is run alone, and ends like it."""

import subprocess
from pathlib import Path

import pytest
import ready_torch
from device import DEVICE

if DEVICE != "virtual":
    pytest.skip("there is one way to run on a GPU", allow_module_level=True)

HERE = Path(__file__).resolve().parent


def both(folder, script, *arguments, options=(), **more):
    """Runs a script with the torch at hand and alone; returns both processes that have ended."""
    ended = []
    for way, command in (("ready", ready_torch.command()), ("alone", ready_torch.PLAIN)):
        run = [*command, "run", "--device", "virtual", "--no-check", "--force", "-o", f"{way}.sstrace"]
        run += [*options, str(script), *arguments]
        ended.append(subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=300, **more))
    return ended


@pytest.mark.parametrize("name", ["fail/autocast_cache", "fail/graph_without_edge", "pass/two_devices"])
def test_events_are_the_same(name, tmp_path):
    from streamsan import _core

    for done in both(tmp_path, HERE / f"{name}.py", options=("--device-count", "2")):
        assert done.returncode == 0, done.stderr
    ready, alone = (
        [{**event, "address": None} for event in _core.read_events(str(tmp_path / f"{way}.sstrace"))]
        for way in ("ready", "alone")
    )
    assert len(ready) > 100
    assert ready == alone


def test_findings_beside_threads_of_c_are_the_same(tmp_path):
    """NCCL's back end has threads of its own, so the events have no fixed order."""
    import streamsan

    for done in both(tmp_path, HERE / "fail" / "nccl_asynchronous.py"):
        assert done.returncode == 0, done.stderr
    ready, alone = (
        [
            (finding.rule, finding.fingerprint)
            for finding in streamsan.check(tmp_path / f"{way}.sstrace").findings
        ]
        for way in ("ready", "alone")
    )
    assert len(ready) > 0
    assert ready == alone


START = """\
import atexit
import os
import sys
import threading
import time

import helper
import torch

mine = ("STREAMSAN_TRACE", "STREAMSAN_RUN", "STREAMSAN_PYTHON", "PWD", "_")
print(*sorted(f"{name}={value}" for name, value in os.environ.items() if name not in mine), sep="\\n")
print(os.getcwd(), sys.argv, sys.orig_argv, sys.path, sys.executable, sys.flags, sep="\\n")
print(__name__, __file__, __builtins__, __doc__, __spec__, __package__, __cached__, type(__loader__), sep="\\n")
print(sys.modules["__main__"].helper, sys.stdin.read(), sep="\\n")
print(threading.active_count(), torch.cuda.is_initialized(), torch.cuda.device_count(), sep="\\n")
print("by the server" if os.getppid() != int(os.environ["STREAMSAN_RUN"]) else "by the command", file=sys.stderr)
atexit.register(print, "the end")
threading.Thread(target=lambda: (time.sleep(0.2), print(torch.ones(3, device="cuda") * 2))).start()


def leave():
    END


leave()
"""


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("pass", 0),
        ("1 / 0", 1),
        ("exec('no syntax')", 1),
        ("sys.exit(7)", 7),
        ("sys.exit('no more')", 1),
        ("os.kill(os.getpid(), 9)", 137),
        ("os._exit(300)", 44),
    ],
)
def test_a_script_sees_the_same_and_ends_the_same(end, status, tmp_path):
    (tmp_path / "helper.py").touch()
    script = tmp_path / "script.py"
    script.write_text(START.replace("END", end))
    ready, alone = both(
        tmp_path, "script.py", "-x", "an argument", options=("--device-count", "3"), input="text"
    )
    ways = ("by the server\n", "by the command\n")
    for done, way in zip((ready, alone), ways, strict=True):
        assert way in done.stderr, done.stderr
        assert done.returncode == status
    assert ready.stdout.splitlines() == alone.stdout.splitlines()
    assert [
        done.stderr.replace(way, "").replace(name, "")
        for done, way, name in zip((ready, alone), ways, ("ready", "alone"), strict=True)
    ] == [alone.stderr.replace(ways[1], "").replace("alone", "")] * 2


def test_another_environment_has_an_interpreter_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "helper.py").touch()
    (tmp_path / "script.py").write_text(START.replace("END", "pass"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for done in both(tmp_path, "script.py", input="text"):
        assert "by the command\n" in done.stderr, done.stderr
        assert "OMP_NUM_THREADS=1\n" in done.stdout


def test_copies_are_late_only_where_that_is_asked_for(tmp_path):
    (tmp_path / "script.py").write_text(
        "import torch\n"
        "x = torch.zeros(4).pin_memory()\n"
        "x.copy_(torch.ones(4, device='cuda'), non_blocking=True)\n"
        "print(x.sum().item())\n"
    )
    for options, value in ((("--delay-copies",), "0.0\n"), ((), "4.0\n")):
        assert [done.stdout for done in both(tmp_path, "script.py", options=options)] == [value] * 2
