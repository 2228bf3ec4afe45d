"""The hook that `streamsan run` puts in front of a program."""

import os
import subprocess
import sys
from pathlib import Path

import streamsan

STARTUP = str(Path(streamsan.__file__).parent / "_startup")


def run(code, *folders):
    paths = [STARTUP, *map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def test_it_stays_out_of_sight():
    done = run("import sys; print([entry for entry in sys.path if '_startup' in entry])")
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_the_one_it_hides_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.hidden_ran = __file__\n")
    done = run("import sys; print(sys.hidden_ran == sys.modules['sitecustomize'].__file__)", tmp_path)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_mistake_in_the_hidden_one_is_reported_as_usual(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('broken')\n")
    done = run("print('goes on')", tmp_path)
    assert done.stdout == "goes on\n"
    assert "RuntimeError: broken" in done.stderr


def test_without_the_device_library_torch_is_left_alone():
    done = run(
        "import sys; print([type(finder).__name__ for finder in sys.meta_path if 'Torch' in repr(finder)])"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
