"""The examples: each `bad.py` has the findings that its comments name, each `fixed.py` and `managed.py` has none.

The comments are those of the scripts in `fail/`, see test_scripts.py. A bad example without them has at
least one error.
"""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from device import DEVICE, on_this_device

pytest.importorskip("torch")

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(folder for folder in (ROOT / "examples").iterdir() if (folder / "bad.py").exists())
COMMAND = re.compile(r"^streamsan run (.*)$", re.MULTILINE)
assert EXAMPLES, "no examples"


def load(name):
    """The module beside this one: tests are no package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


scripts = load("test_scripts")


def report(file, folder):
    """Runs the command that the head of the example names."""
    *options, named = COMMAND.search(file.read_text())[1].split()
    assert ROOT / named == file, "the head of an example has its own command"
    command = [sys.executable, "-m", "streamsan"]
    trace = str(folder / "run.sstrace")
    run = [*command, "run", "--device", DEVICE, "--no-check", "-o", trace, *on_this_device(options), named]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    check = [*command, "check", "--output-format", "json", trace]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


examples = pytest.mark.parametrize("folder", [pytest.param(folder, id=folder.name) for folder in EXAMPLES])


@examples
def test_bad(folder, tmp_path):
    file = folder / "bad.py"
    expected = scripts.expectations(file.read_text())
    findings = report(file, tmp_path)["findings"]
    found = [
        (
            finding["rule"],
            finding["level"],
            scripts.user_line(finding.get("first"), file),
            scripts.user_line(finding["second"], file),
        )
        for finding in findings
    ]
    if expected:
        assert sorted(found) == expected
    else:
        assert "error" in [level for _, level, _, _ in found]
    assert all(finding["fix"] is not None for finding in findings if finding["level"] == "error")


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=f"{folder.name}-{file.stem}")
        for folder in EXAMPLES
        for file in (folder / "fixed.py", folder / "managed.py")
        if file.exists() or file.stem == "fixed"
    ],
)
def test_fixed(file, tmp_path):
    assert not scripts.expectations(file.read_text())
    answer = report(file, tmp_path)
    assert answer["findings"] == []
    assert answer["gaps"] == []
