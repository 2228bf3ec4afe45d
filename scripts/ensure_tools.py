"""Installs the linters and test runner, at pinned versions, if they are missing."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

TOOLS = {"ruff": "0.17.6", "mypy": "2.4.1", "pytest": "9.2.0"}


def main() -> None:
    missing = []
    for name, version in TOOLS.items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = None
        if found != version:
            missing.append(f"{name}=={version}")
    if missing:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *missing], check=True)


if __name__ == "__main__":
    main()
