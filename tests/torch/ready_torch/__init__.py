"""`streamsan run` with a torch that is loaded already, for tests that run many short scripts.

`import torch` is nine tenths of the processor time of a short script. So for each worker of the tests a server
(`server.py`) loads torch below the preloaded library and forks for each script; what `streamsan run` takes for the
interpreter is a client (`client.py`), whose end is that of the script. What the script does is recorded as ever: the
recorder starts, and the torch layer is put in place, in the fork. `test_ready_torch.py` compares.

What is not: a script that is not run as `python SCRIPT`, or in another environment than that of the server, gets an
interpreter of its own. So does everything on a GPU.
"""

from __future__ import annotations

import atexit
import os
import select
import shlex
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from device import DEVICE

HERE = Path(__file__).resolve().parent
PLAIN = [sys.executable, "-m", "streamsan"]
LONGEST_IMPORT = 300
"""Seconds."""
# Before any test has changed it.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}


def command() -> list[str]:
    """What to write for `streamsan` in front of the arguments of `run`."""
    if DEVICE != "virtual":
        return PLAIN
    folder = package() / "lib"
    return [sys.executable, str(HERE / "command.py"), interpreter(folder / "libstreamsan_device.so")]


def interpreter(*preloaded: Path, flags: tuple[str, ...] = (), runtime: Path | None = None) -> str:
    """What to write for `python` with these flags, libraries of ours, and runtime behind the one for a GPU."""
    # As `streamsan run` has it.
    wanted = {
        "LD_PRELOAD": ":".join(map(str, preloaded)),
        "LD_LIBRARY_PATH": str(preloaded[0].parent / "virtual"),
    }
    wanted = {name: ":".join(filter(None, [value, ENVIRONMENT.get(name)])) for name, value in wanted.items()}
    if runtime is not None:
        wanted["STREAMSAN_RUNTIME"] = str(runtime)
    return str(Server.of(tuple(wanted.items()), flags).client)


def package() -> Path:
    """The folder of the installed package."""
    import streamsan

    return Path(streamsan.__file__).resolve().parent


class Server:
    """A process with torch, which ends when this one does."""

    def __init__(self, variables: tuple[tuple[str, str], ...], flags: tuple[str, ...]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="ready-torch-")
        socket = Path(self._folder.name, "socket")
        self.client = Path(self._folder.name, "python")
        python = shlex.quote(sys.executable)
        words = shlex.join(["-IS", str(HERE / "client.py"), sys.executable, str(socket)])
        # `streamsan` asks the interpreter what it is by code on the command line.
        asked = f'[ "$1" = -c ] && exec {python} "$@"'
        self.client.write_text(f'#!/bin/sh\n{asked}\nexec {python} {words} "$@"\n')
        self.client.chmod(0o700)
        # By this name its frames are those of the package, which are left out of stacks.
        script = f"{package()}/{os.path.relpath(HERE / 'server.py', package())}"
        self._process = subprocess.Popen(
            [sys.executable, *flags, script, str(socket)],
            env={**ENVIRONMENT, **dict(variables)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], LONGEST_IMPORT)
        said = self._process.stdout.readline() if ready else "nothing"
        assert said == "ready\n", f"the server with torch said {said!r}"
        atexit.register(self._stop)

    def _stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)

    @staticmethod
    @cache
    def of(variables: tuple[tuple[str, str], ...], flags: tuple[str, ...]) -> Server:
        """The one server of this process for these."""
        return Server(variables, flags)
