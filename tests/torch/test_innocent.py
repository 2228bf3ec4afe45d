"""Ordinary PyTorch programs that are right: no error in any, and losses equal to those on a plain CPU.

Each script computes both and compares them. Its head says what it needs:

    # @ gpus: 2                         two devices
    # @ packages: timm, transformers    packages; without them the test is skipped
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from device import options

pytest.importorskip("torch")

HERE = Path(__file__).resolve().parent / "innocent"
DEVICES = re.compile(r"^# ?@ gpus: (\d+)$", re.MULTILINE)
PACKAGES = re.compile(r"^# ?@ packages: (.+)$", re.MULTILINE)
SCRIPTS = sorted(HERE.glob("*.py"))
assert SCRIPTS, "no scripts in innocent/"


@pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in SCRIPTS])
def test_innocent(file, tmp_path):
    source = file.read_text()
    for package in re.split(r",\s*", needed[1]) if (needed := PACKAGES.search(source)) else []:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    devices = DEVICES.search(source)
    command = [sys.executable, "-m", "streamsan", "run", *options(devices[1] if devices else 1)]
    command += ["-o", str(tmp_path / "run.sstrace"), str(file)]
    # Small tensors: more threads only wait for each other.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, cwd=tmp_path)
    everything = done.stdout + done.stderr
    assert done.returncode == 0, everything
    assert "losses:" in done.stdout, everything
    assert not re.search(r"^error\[", everything, re.MULTILINE), everything
