"""The `streamsan` command with another interpreter: `python command.py INTERPRETER ARGUMENT ...`."""

import os
import signal
import sys
from pathlib import Path

import streamsan
from streamsan import _core

# As in streamsan/__main__.py.
os.environ["STREAMSAN_PYTHON"] = sys.argv[1]
os.environ["STREAMSAN_PACKAGE"] = str(Path(streamsan.__file__).resolve().parent)
signal.signal(signal.SIGINT, signal.SIG_DFL)
sys.exit(_core.main(["streamsan", *sys.argv[2:]]))
