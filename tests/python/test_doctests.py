"""The examples in the docstrings of what is public.

Those marked `# doctest: +DEVICE` need a process that is recorded, and run in one; so do those of pipelines and managed
streams, marked `# doctest: +CUDA` where they need a device. All others run here.
"""

import doctest
import importlib
import inspect
import subprocess
import sys

import pytest
from sample_traces import BAD, EMPTY, FIXED, write

import streamsan

DEVICE = doctest.register_optionflag("DEVICE")
CUDA = doctest.register_optionflag("CUDA")
OWN = [
    name
    for name in streamsan.__all__
    if name != "__version__"
    and getattr(streamsan, name).__module__.rpartition(".")[2]
    in ("_errors", "_check", "_marks", "_report", "_session")
]


def examples(name, *, device):
    """The examples of one public thing and of its public members."""
    thing = getattr(streamsan, name)
    module = importlib.import_module(thing.__module__)
    finder = doctest.DocTestFinder(exclude_empty=True, recurse=True)
    for test in finder.find(thing, name, module=module, globs={}):
        on_device = any(example.options.get(DEVICE) for example in test.examples)
        if test.examples and on_device == device:
            yield test


def run(test, globs):
    test.globs = dict(globs)
    said = []
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL, verbose=False
    )
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
    return runner.tries


@pytest.mark.parametrize("name", OWN)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for trace, program in [("bad", BAD), ("fixed", FIXED), ("empty", EMPTY)]:
        write(tmp_path, trace, program)
    for test in examples(name, device=False):
        if "import streamsan, torch" in test.docstring:
            pytest.importorskip("torch")
        assert run(test, {}) == len(test.examples)


def documented(name):
    thing = getattr(streamsan, name)
    yield name, thing
    if inspect.isclass(thing):
        for member, value in vars(thing).items():
            public = not member.startswith("_")
            if public and (inspect.isfunction(value) or isinstance(value, property)):
                yield f"{name}.{member}", value


# Values that the example of what holds them shows.
NO_EXAMPLE = ("Advice", "Reach", "Fix", "Gap", "Ignored")


@pytest.mark.parametrize("name", [name for name in OWN if name not in NO_EXAMPLE])
def test_everything_public_has_an_example(name):
    for shown, thing in documented(name):
        if shown in ("Session.report",):
            continue  # In the example of its class.
        assert ">>> " in (inspect.getdoc(thing) or ""), shown


ON_DEVICE = """
import sys
sys.path[:0] = {path!r}
import torch
from test_doctests import OWN, examples, run

x = torch.ones(4, device="cuda")

def step(batch):
    batch.add_(1)

ran = sum(run(test, dict(step=step, batch=x)) for name in OWN for test in examples(name, device=True))
print("ran", ran)
"""


def test_examples_of_a_recorded_process(tmp_path):
    pytest.importorskip("torch")
    from pathlib import Path

    script = tmp_path / "examples.py"
    script.write_text(ON_DEVICE.format(path=[str(Path(__file__).parent)]))
    done = subprocess.run(
        [sys.executable, "-m", "streamsan", "run", "--no-check", "-o", "run.sstrace", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) >= 8


RUNTIME = [
    name
    for name in streamsan.__all__
    if name != "__version__"
    and getattr(streamsan, name).__module__.startswith(("streamsan._pipeline", "streamsan._streams"))
]

OF_THE_RUNTIME = """
import sys
sys.path[:0] = {path!r}
from test_doctests import RUNTIME, examples, run

ran = sum(run(test, {{}}) for name in RUNTIME for test in examples(name, device=False))
print("ran", ran)
"""


def test_examples_of_the_runtime(tmp_path):
    pytest.importorskip("torch")
    from pathlib import Path

    script = tmp_path / "examples.py"
    script.write_text(OF_THE_RUNTIME.format(path=[str(Path(__file__).parent)]))
    done = subprocess.run(
        [sys.executable, "-m", "streamsan", "run", "-o", "run.sstrace", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[-1]) >= 30 and "No hazards in what was seen" in done.stderr
