"""Runs a program under `streamsan run` with the recording of the mode for a GPU, computing as the virtual device does.

`python observed.py SCRIPT [ARGUMENT ...]`
"""

import runpy
import sys

import torch  # noqa: F401, the layer is put in place once it is imported

from streamsan.torch import threads
from streamsan.torch.observe import ObserveMode
from streamsan.torch.virtual import compute


class Computing(ObserveMode):
    """The mode for a GPU without one."""

    def __new__(cls):
        return super().__new__(cls, compute)


threads._leave_thread()
for name in ("StreamMode", "make_mode"):
    if hasattr(threads, name):
        setattr(threads, name, Computing)
assert type(threads.enter_thread()) is Computing

sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
