"""Installs streamsan from this tree into the running environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(root)]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
