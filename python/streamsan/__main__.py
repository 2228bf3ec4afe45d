"""The `streamsan` command."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from streamsan import _core


def main() -> int:
    """Runs the command with the arguments of this process and returns its exit status."""
    os.environ["STREAMSAN_PYTHON"] = sys.executable
    os.environ["STREAMSAN_PACKAGE"] = str(Path(__file__).resolve().parent)
    # Ctrl-C is for the watched program; the command handles it, and Python would raise after the report.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["streamsan", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
