"""The stub of the native module says what the module has."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_the_stub_and_the_module_agree(tmp_path):
    pytest.importorskip("mypy")
    # Names, parameters and their kinds and defaults, both ways round; it imports what is installed.
    allowed = tmp_path / "allowed"
    # Made by the module for `from streamsan._core import *`, which nobody writes.
    allowed.write_text(r"streamsan\._core\.__all__" + "\n")
    command = [sys.executable, "-m", "mypy.stubtest", "streamsan._core", "--ignore-disjoint-bases"]
    done = subprocess.run(
        [*command, "--allowlist", str(allowed)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_user_programs_are_typed(version, tmp_path):
    pytest.importorskip("mypy")
    # As a user's checker sees the installed package: strict, and from outside of this repository.
    programs = sorted((Path(__file__).parent / "typing").glob("*.py"))
    assert programs
    # torch's own types once: to read them takes longer than all else.
    settings = tmp_path / "mypy.ini"
    torch = "" if version == "3.10" else "[mypy-torch.*]\nfollow_imports = skip\n"
    settings.write_text(f"[mypy]\n{torch}")
    done = subprocess.run(
        [
            *[sys.executable, "-m", "mypy", "--strict", "--python-version", version],
            *["--config-file", str(settings), "--cache-dir", str(tmp_path / "cache")],
            *map(str, programs),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
