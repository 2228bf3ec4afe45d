"""Versions: the script that tests several, the data it writes, and a torch that nobody has tried."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import streamsan

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "streamsan"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("test_versions_script", ROOT / "scripts/test_versions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_outcome_counts_what_pytest_says(script, tmp_path):
    (tmp_path / "test_four.py").write_text(
        "import pytest\n"
        "@pytest.fixture\n"
        "def broken(): raise RuntimeError\n"
        "def test_right(): pass\n"
        "def test_wrong(): assert False\n"
        "def test_error(broken): pass\n"
        "def test_left_out(): pytest.skip('why not')\n"
    )
    assert script.run_pytest(sys.executable, [str(tmp_path), "--rootdir", str(tmp_path)]) == {
        "passed": 1,
        "failed": 2,
        "skipped": 1,
        "failures": ["test_four::test_wrong", "test_four::test_error"],
    }


def test_new_outcomes_take_the_place_of_old_ones(script):
    def outcome(passed):
        return {"passed": passed}

    def pair(torch, python):
        return {"torch": torch, "cuda": "13.0", "python": python}

    data = {"kept": 1, "tested": [{**pair("2.11.0", "3.9.1"), "suites": {"torch": outcome(1)}}]}
    data = script.merged(data, pair("2.11.0", "3.10.2"), {"torch": outcome(2), "python": outcome(3)})
    data = script.merged(data, pair("2.9.0", "3.10.2"), {"torch": outcome(4)})
    assert [(entry["torch"], entry["python"]) for entry in data["tested"]] == [
        ("2.9.0", "3.10.2"),
        ("2.11.0", "3.9.1"),
        ("2.11.0", "3.10.2"),
    ]
    # The other suites stay, but not those of another release of torch.
    data = script.merged(data, pair("2.11.0", "3.10.13"), {"torch": outcome(5)})
    assert data["tested"][2]["suites"] == {"torch": outcome(5), "python": outcome(3)}
    data = script.merged(data, pair("2.11.1", "3.10.13"), {"torch": outcome(6)})
    assert data["tested"][2]["suites"] == {"torch": outcome(6)}
    assert data["kept"] == 1
    # `torch` contains `basics`: nothing is counted twice.
    data = script.merged(data, pair("2.11.1", "3.10.13"), {"basics": outcome(1)})
    assert data["tested"][2]["suites"] == {"torch": outcome(6)}


def test_the_package_brings_the_data():
    data = json.loads(Path(streamsan.__file__).with_name("versions.json").read_text())
    assert data["tested"] and all(entry["suites"] for entry in data["tested"])


def test_every_checked_python_is_checked():
    """What the table calls checked is what `make lint` runs."""
    checked = json.loads((PACKAGE / "versions.json").read_text())["python_checked"]
    assert "scripts/check_pythons.py" in (ROOT / "Makefile").read_text()
    project = (ROOT / "pyproject.toml").read_text()
    assert re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project) == checked
    assert f'requires-python = ">={checked[0]}"' in project
    assert f'python_version = "{checked[0]}"' in project
    assert f'target-version = "py{checked[0].replace(".", "")}"' in project


def test_what_is_needed_of_torch_is_complete():
    """Everything private that the layer's modules use without asking whether it is there."""
    pytest.importorskip("torch")
    from streamsan.torch.versions import NEEDED

    aliases = {"torch": "", "native": "_C", "python_dispatch": "utils._python_dispatch"}
    used = set()
    for file in (PACKAGE / "torch").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            parts = []
            while isinstance(node, ast.Attribute):
                parts.append(node.attr)
                node = node.value
            if isinstance(node, ast.Name) and node.id in aliases and parts:
                name = ".".join(filter(None, [aliases[node.id], *reversed(parts)]))
                if re.search(r"(^|\.)_[a-zA-Z]", name) and name != "_C":
                    used.add(name)
    assert used, "no private name was found, so this test looks in the wrong place"
    for name in used:
        assert any(known == name or known.startswith(f"{name}.") for known in NEEDED), name


def test_all_that_is_needed_is_there():
    torch = pytest.importorskip("torch")
    from streamsan.torch.versions import require

    require(torch)


def test_what_is_missing_is_named():
    pytest.importorskip("torch")
    from streamsan.torch.versions import require

    torch = SimpleNamespace(__version__="9.9.0", version=SimpleNamespace(cuda="13.0"), here=1)
    with pytest.raises(streamsan.CaptureError) as raised:
        require(torch, ["here", "_C.gone", "also_gone"])
    assert str(raised.value).startswith(
        "torch 9.9.0 has no torch._C.gone, torch.also_gone, which streamsan needs; "
        "this streamsan was tested with torch 2."
    )
    with pytest.raises(streamsan.CaptureError, match="built without CUDA"):
        require(SimpleNamespace(__version__="9.9.0+cpu", version=SimpleNamespace(cuda=None)))


def test_a_torch_that_nobody_has_tried_ends_in_a_clear_message(tmp_path):
    """Its version is said before the run; what it lacks, when it is imported."""
    # For Python 3.10 there is no newer torch than the newest that was tested.
    version, word = ("9.9.0+cu139", "newer") if sys.version_info >= (3, 11) else ("2.1.0+cu139", "older")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text(f"__version__ = '{version}'\ncuda = '13.9'\n")
    (tmp_path / "torch" / "__init__.py").write_text(f"from . import version\n__version__ = '{version}'\n")
    (tmp_path / "program.py").write_text("import torch\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "streamsan", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            env=environment,
        )

    done = run("run", "-o", "run.sstrace", "program.py")
    assert done.returncode == 1, done.stderr
    assert f"streamsan> torch {version} is {word} than any that was tested (2." in done.stderr
    assert f"CaptureError: torch {version} has no torch._C" in done.stderr
    told = run("doctor").stdout
    assert f"Yours, torch {version} with Python" in told
    assert f"not tested, and it may not work: torch {version} is {word} than any" in told


def test_nothing_of_ours_is_deprecated(tmp_path):
    """Each module, compiled and imported, with warnings as errors."""
    pytest.importorskip("torch")
    installed = Path(streamsan.__file__).parent
    names = [
        f"streamsan.{file.relative_to(installed).with_suffix('').as_posix().replace('/', '.')}"
        for file in sorted(installed.rglob("*.py"))
        if file.stem not in ("__init__", "__main__") and file.parent.name != "_startup"
    ]
    assert len(names) > 20
    code = (
        "import importlib, warnings, torch\n"
        "warnings.simplefilter('error')\n"
        f"for name in {names!r}:\n    importlib.import_module(name)\n"
    )
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr
