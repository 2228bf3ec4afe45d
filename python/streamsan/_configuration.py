"""Checks `[tool.streamsan]` of the files that are named; for pre-commit.

`streamsan check` judges the settings before it reads a trace, so it is given one without operations.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

# Wrong usage; all others are about the trace.
_WRONG: Final = 2


def main(files: list[str]) -> int:
    """Returns 1 if a file has wrong settings, which are printed, else 0."""
    from streamsan import _core

    status = 0
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder, "nothing.sstrace")
        _core.write_program("nothing", "streams default\n", str(trace))
        for file in files:
            path = Path(file)
            command = [sys.executable, "-m", "streamsan", "check", "--color", "never", str(trace)]
            done = subprocess.run(
                command, cwd=path.resolve().parent, capture_output=True, text=True, check=False
            )
            if done.returncode == _WRONG:
                # The command names the file as it is called where it ran.
                print(done.stderr.strip().replace(f"error: {path.name}:", f"{file}:"))
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
