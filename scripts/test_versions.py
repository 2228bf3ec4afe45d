"""Runs the suites on several interpreters and torch versions with one wheel, and writes what came of it.

    python scripts/test_versions.py build/py3.10-torch2.11.0 build/py3.13-torch2.15.0 --write

Each argument is a virtual environment that has torch, numpy and pytest. The wheel is built once (it serves
Python 3.10 and newer) and installed into each of them; the suites run there. With `--write` the outcome of each
suite replaces what `python/streamsan/versions.json` holds for that pair, from where `streamsan doctor` and
docs/versions.md have it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ROOT / "python" / "streamsan" / "versions.json"

# `make demo` would install into .venv, with another interpreter.
NOT_HERE = "tests/python/test_documents.py::test_make_demo"
BASICS = ("test_compile", "test_unsupported", "test_streams", "test_scripts")
# From quick to slow; `torch` contains `basics`. The innocent programs take as long as all others together.
SUITES: dict[str, list[str]] = {
    "python": ["tests/python", "--deselect", NOT_HERE],
    "basics": [f"tests/torch/{name}.py" for name in BASICS],
    "torch": ["tests/torch", "--ignore", "tests/torch/test_innocent.py"],
    "innocent": ["tests/torch/test_innocent.py"],
}
DEFAULT_SUITES = ("python", "torch")

PROBE = """
import json, platform, runpy, importlib.util, pathlib
version = runpy.run_path(str(pathlib.Path(importlib.util.find_spec("torch").origin).with_name("version.py")))
print(json.dumps([platform.python_version(), version["__version__"], version.get("cuda")]))
"""


def build_wheel(folder: Path) -> Path:
    """Builds the wheel of this tree."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    [wheel] = folder.glob("streamsan-*.whl")
    return wheel


def versions_of(python: str) -> dict[str, str]:
    """Returns the versions of an environment, without its build tags."""
    said = subprocess.run([python, "-c", PROBE], check=True, capture_output=True, text=True).stdout
    interpreter, torch, cuda = json.loads(said)
    return {"python": interpreter, "torch": torch.partition("+")[0], "cuda": cuda or ""}


def environment_of(python: str) -> dict[str, str]:
    """Returns the variables under which the commands of this environment come first."""
    path = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])
    # Programs that take the machine's cores from each other only wait.
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}


def run_pytest(python: str, arguments: list[str]) -> dict[str, Any]:
    """Runs tests and returns how many passed, failed and were skipped, and which failed."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = Path(folder, "outcome.xml")
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", str(outcome)]
        subprocess.run([*command, *arguments], cwd=ROOT, env=environment_of(python), check=False)
        if not outcome.exists():
            sys.exit(f"{python}: pytest did not run; does this environment have it?")
        return outcome_of(outcome.read_text())


def outcome_of(junit: str) -> dict[str, Any]:
    """Reads pytest's own account of a run.

    Example:
        >>> outcome_of('<testsuite><testcase classname="a" name="b"><failure/></testcase></testsuite>')
        {'passed': 0, 'failed': 1, 'skipped': 0, 'failures': ['a::b']}
    """
    passed, skipped, failures = 0, 0, []
    for case in ElementTree.fromstring(junit).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failures.append(f"{case.get('classname')}::{case.get('name')}")
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return {"passed": passed, "failed": len(failures), "skipped": skipped, "failures": failures}


def run_corpus(python: str, folder: Path, skip: str) -> dict[str, Any]:
    """Scores a folder of scripts that say themselves what must be found in them."""
    command = [
        sys.executable,
        str(folder / "score.py"),
        str(Path(python).with_name("streamsan")),
        str(folder),
    ]
    done = subprocess.run(
        [*command, "--skip", skip], env=environment_of(python), capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr, flush=True)
    score = re.search(r"^(\d+) of (\d+) right$", done.stdout, re.MULTILINE)
    if score is None:
        sys.exit(f"{folder / 'score.py'}: no score was printed")
    right, all_scripts = int(score[1]), int(score[2])
    wrong = [line.split()[0] for line in done.stdout.splitlines()[:-1] if line.strip()]
    return {"passed": right, "failed": all_scripts - right, "skipped": 0, "failures": wrong}


def commit() -> str:
    """Returns the commit of the tree, marked if it has changes."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def merged(known: dict[str, Any], pair: dict[str, str], suites: dict[str, Any]) -> dict[str, Any]:
    """Returns the data with these outcomes in place of older ones of the same torch and Python."""

    def key(entry: dict[str, Any]) -> list[list[int]]:
        return [[int(part) for part in entry[name].split(".")[:2]] for name in ("torch", "python")]

    older = [entry for entry in known["tested"] if key(entry) == key(pair)]
    kept = [entry for entry in known["tested"] if key(entry) != key(pair)]
    before = older[0]["suites"] if older and older[0]["torch"] == pair["torch"] else {}
    now = {**before, **suites}
    if "torch" in now:
        now.pop("basics", None)
    entry = {**pair, "suites": now}
    return {**known, "tested": sorted([*kept, entry], key=key)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("environments", nargs="+", type=Path, help="virtual environments with torch")
    parser.add_argument("--wheel", type=Path, help="install this wheel instead of one of this tree")
    parser.add_argument("--commit", default=None, help="the commit of that wheel")
    parser.add_argument("--suites", default=",".join(DEFAULT_SUITES), help=f"of {', '.join(SUITES)}")
    parser.add_argument("--corpus", type=Path, help="also score the scripts of this folder, by its score.py")
    parser.add_argument("--corpus-skip", default="", help="leaves out scripts that need these (nccl,graph)")
    parser.add_argument("--write", action="store_true", help=f"write {VERSIONS.relative_to(ROOT)}")
    options = parser.parse_args()
    names = [name for name in options.suites.split(",") if name]
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        wheel = options.wheel or build_wheel(Path(folder))
        for environment in options.environments:
            # Not resolved: the link is what makes it this environment's.
            python = str(environment.absolute() / "bin" / "python")
            pair = versions_of(python)
            print(f"== torch {pair['torch']}, Python {pair['python']}", flush=True)
            install = [
                python,
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-deps",
                "--force-reinstall",
                str(wheel),
            ]
            subprocess.run(install, check=True)
            made = {"commit": options.commit or commit(), "date": datetime.date.today().isoformat()}
            outcomes = {name: {**run_pytest(python, SUITES[name]), **made} for name in names}
            if options.corpus:
                outcomes["corpus"] = {**run_corpus(python, options.corpus, options.corpus_skip), **made}
            for name, outcome in outcomes.items():
                print(f"{name}: {outcome['passed']} passed, {outcome['failed']} failed", flush=True)
                failed |= bool(outcome["failed"])
            if options.write:
                known = json.loads(VERSIONS.read_text())
                text = json.dumps(merged(known, pair, outcomes), indent=2, ensure_ascii=False)
                VERSIONS.write_text(text + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
