"""The `streamsan` command."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from streamsan import _core


def main() -> int:
    """Runs the command with the arguments of this process and returns its exit status."""
    os.environ["STREAMSAN_PYTHON"] = sys.executable
    os.environ["STREAMSAN_PACKAGE"] = str(Path(__file__).resolve().parent)
    return _core.main(["streamsan", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
