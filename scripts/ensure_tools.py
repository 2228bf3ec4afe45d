"""Installs the linters and test runner, at pinned versions, if they are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOLS = {"ruff": "0.17.6", "mypy": "2.4.1", "pytest": "9.2.0"}


def main() -> None:
    missing = []
    for name, version in TOOLS.items():
        command = Path(sys.prefix, "bin", name)
        if command.exists():
            said = subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout
            if version in said.split():
                continue
        missing.append(f"{name}=={version}")
    if missing:
        # A version of another environment may be in sight (see make_venv.py), without its command.
        command_line = [sys.executable, "-m", "pip", "install", "--quiet", "--ignore-installed", *missing]
        subprocess.run(command_line, check=True)


if __name__ == "__main__":
    main()
