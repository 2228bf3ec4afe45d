"""Starts pytest again under the device library, and knows the folder of its traces."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NoReturn

import pytest

from streamsan._marks import recorder

# The process that was started again, and its folder: `4711:/tmp/streamsan-x`. It is inherited.
_RESTARTED: Final = "STREAMSAN_PYTEST"
_PACKAGE: Final = Path(__file__).resolve().parent.parent


class CannotRecord(Exception):
    """Nothing can be recorded here. The text says why, and what to do.

    Attributes:
        is_usage: Whether somebody has written something wrong, so that it is an error everywhere.
    """

    def __init__(self, message: str, *, is_usage: bool = False) -> None:
        """Keeps the reason."""
        super().__init__(message)
        self.is_usage = is_usage


def ensure_recorded(config: pytest.Config, device: str) -> None:
    """Returns if this process is recorded; else it is replaced by one that is, on such a device.

    Raises:
        CannotRecord: if that is not possible.
    """
    core = recorder()
    if core is not None:
        # The default is for who asks for nothing; `streamsan run` was asked.
        asked = config.known_args_namespace.streamsan_device
        if asked in ("virtual", "cuda") and core.is_virtual() != (asked == "virtual"):
            raise CannotRecord(
                f"streamsan: --streamsan-device={asked}, but pytest is recorded on {recorded_on()} already\n"
                f"help: start it with `streamsan run --device {asked}`",
                is_usage=True,
            )
        return
    if _owner() == os.getpid():
        raise CannotRecord("streamsan: recording has not started, for the reason that was given above")
    if list(config.invocation_params.args) != sys.argv[1:] or config.invocation_params.plugins:
        raise CannotRecord(
            "streamsan: pytest was started by a program, which cannot be started again from here\n"
            "help: start that program as `streamsan run --no-check PROGRAM`, or pytest from a shell"
        )
    _restart(config, device)


def recorded_on() -> str:
    """Returns what this process is recorded on, in words."""
    core = recorder()
    return "the virtual device" if core is None or core.is_virtual() else "the GPU"


def folder() -> Path:
    """Returns the folder of this session's traces."""
    owner, _, path = os.environ.get(_RESTARTED, "").partition(":")
    if owner and (owner == str(os.getpid()) or "PYTEST_XDIST_WORKER" in os.environ):
        return Path(path)
    # Under `streamsan run`, or a session within a test of another one.
    made = tempfile.mkdtemp(prefix="streamsan-")
    os.environ[_RESTARTED] = f"{os.getpid()}:{made}"
    return Path(made)


def clean_environment() -> dict[str, str]:
    """Returns the environment of this process without what has it recorded."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("STREAMSAN_")}
    for key in ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH"):
        parts = environment.pop(key, "").split(":")
        left = [part for part in parts if part and not _is_ours(part)]
        if left:
            environment[key] = ":".join(left)
    return environment


def _is_ours(path: str) -> bool:
    return Path(path).is_absolute() and Path(path).resolve().is_relative_to(_PACKAGE)


def _owner() -> int | None:
    owner = os.environ.get(_RESTARTED, "").partition(":")[0]
    return int(owner) if owner.isdigit() else None


def _restart(config: pytest.Config, device: str) -> NoReturn:
    made = tempfile.mkdtemp(prefix="streamsan-")
    try:
        environment = _recorded_environment(config, device, Path(made))
        # Whatever has begun to capture holds the terminal.
        capture = config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.stop_global_capturing()
        sys.stdout.flush()
        sys.stderr.flush()
        environment["STREAMSAN_TRACE"] = os.path.join(made, "main.sstrace")
        environment[_RESTARTED] = f"{os.getpid()}:{made}"
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _recorded_environment(config: pytest.Config, device: str, made: Path) -> dict[str, str]:
    """Asks `streamsan run`, which looks first whether machine, torch and the project's settings will do."""
    command = [
        sys.executable,
        "-m",
        "streamsan",
        "run",
        "--color",
        "never",
        "--device",
        device,
        "--no-check",
    ]
    command += ["-o", str(made / "environment.sstrace"), "-m", "streamsan._testing.environment"]
    done = subprocess.run(command, cwd=config.rootpath, capture_output=True, text=True, check=False)
    try:
        environment: dict[str, str] = json.loads(done.stdout)
    except ValueError:
        lines = [line for line in done.stderr.strip().splitlines() if not line.startswith("streamsan> ")]
        message = "\n".join(lines) or f"streamsan run ended with status {done.returncode}"
        # Its options are not those of pytest.
        message = message.replace("--device ", "--streamsan-device=")
        raise CannotRecord(message, is_usage="pyproject.toml" in lines[0] if lines else False) from None
    (made / "environment.sstrace").unlink(missing_ok=True)
    # That process has ended.
    for key in ("STREAMSAN_RUN", "STREAMSAN_PYTHON", "STREAMSAN_PACKAGE"):
        environment.pop(key, None)
    return environment
