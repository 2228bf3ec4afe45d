"""Checks types and syntax of the package for each version of Python it is said to work with, installed or not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "streamsan"


def commands(version: str) -> list[list[str]]:
    """Returns what checks for one version.

    Example:
        >>> commands("3.12")[1][-2]
        'py312'
    """
    # What a newer Python would allow to be written otherwise is not wanted.
    tools = Path(sys.executable).parent
    target = f"py{version.replace('.', '')}"
    return [
        [str(tools / "mypy"), "--strict", "--python-version", version, str(PACKAGE)],
        [str(tools / "ruff"), "check", "--quiet", "--ignore", "UP", "--target-version", target, str(PACKAGE)],
    ]


def complaints(version: str) -> str:
    """Returns what is wrong for one version, with the commands that say so."""
    said = ""
    for command in commands(version):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said += f"== Python {version}: {' '.join(command)}\n{done.stdout}{done.stderr}\n"
    return said


def main() -> None:
    versions = json.loads((PACKAGE / "versions.json").read_text())["python_checked"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        said = "".join(pool.map(complaints, versions))
    print(f"{said}see above" if said else f"checked for Python {', '.join(versions)}")
    sys.exit(1 if said else 0)


if __name__ == "__main__":
    main()
