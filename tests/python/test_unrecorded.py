"""In a process that is not recorded: marks do nothing and cost nothing, sessions say how to start the program."""

import os
import subprocess
import sys

import pytest

import streamsan


def python(*arguments, **options):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAMSAN_")}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=300, env=environment, **options
    )


MARKS = """
import sys, timeit, streamsan
thing = object()
def marks():
    assert streamsan.name(thing, "x") is thing
    with streamsan.annotate(reads=[thing], writes=[thing]):
        pass
    with streamsan.ignore("SS101", reason="it waits"):
        pass
marks()
print([name for name in sys.modules if name.split(".")[0] in ("torch", "numpy") or name.endswith("_core")])
named = min(timeit.repeat(lambda: streamsan.name(thing, "x"), number=10_000, repeat=5)) / 10_000
print(named)
"""


def test_marks_do_nothing_and_load_nothing():
    done = python("-c", MARKS)
    assert done.returncode == 0, done.stderr
    loaded, cost = done.stdout.splitlines()
    assert loaded == "[]"
    # A dictionary look-up or two; the machine may be busy.
    assert float(cost) < 20e-6


def test_marks_are_decorators():
    @streamsan.ignore("SS101", reason="it waits")
    @streamsan.annotate(reads=[], writes=[])
    def step(x: int) -> int:
        return x + 1

    assert step(1) == 2


@pytest.mark.parametrize("what", ["sanitize()", "record('x.sstrace')"])
def test_sessions_name_the_command(what, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(f"import streamsan\nwith streamsan.{what}:\n    print('not reached')\n")
    done = python(str(script))
    assert done.returncode == 1 and done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith("streamsan._errors.CaptureError: streamsan."), last
    assert last.endswith("start it as `streamsan run train.py`"), last
    package = tmp_path / "job"
    package.mkdir()
    (package / "__main__.py").write_text(script.read_text())
    done = python("-m", "job", cwd=tmp_path)
    assert done.stderr.splitlines()[-1].endswith("start it as `streamsan run -m job`"), done.stderr
    with pytest.raises(streamsan.CaptureError, match="start it as `pytest --streamsan`"):
        with streamsan.sanitize():
            pass
