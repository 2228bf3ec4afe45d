"""The installed package: what importing it costs, what it brings, what it says."""

import subprocess
import sys
from pathlib import Path

import pytest

import streamsan


def python(code, **environment):
    import os

    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )


def test_importing_loads_neither_torch_nor_the_native_module():
    done = python(
        "import sys, streamsan\n"
        "print(sorted(n for n in sys.modules if n.split('.')[0] in ('torch', 'numpy') or n.endswith('_core')))"
    )
    assert done.stdout == "[]\n", done.stderr


def test_the_libraries_are_beside_the_package():
    folder = Path(streamsan.__file__).parent
    for name in (
        "lib/libstreamsan_device.so",
        "lib/libstreamsan_forward.so",
        "lib/virtual/libcuda.so.1",
        "_startup/sitecustomize.py",
        "py.typed",
    ):
        assert (folder / name).is_file(), name


def test_public_names_exist():
    assert set(streamsan.__all__) >= {"StreamsanError", "TraceError", "CaptureError", "HazardError"}
    for name in streamsan.__all__:
        if name != "__version__":
            assert getattr(streamsan, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        streamsan.nothing


def test_errors_are_a_family():
    for error in (streamsan.TraceError, streamsan.CaptureError, streamsan.HazardError):
        assert issubclass(error, streamsan.StreamsanError)
    assert streamsan.HazardError("2 errors").report == "2 errors"


def test_without_the_device_library_nothing_is_attached():
    done = python(
        "from streamsan import _core; print(_core.attach(), _core.recording(), _core.operations_recorded())"
    )
    assert done.stdout == "False False 0\n", done.stderr


def test_a_trace_that_cannot_be_read_is_an_error_with_its_path(tmp_path):
    from streamsan import _core

    broken = tmp_path / "broken.sstrace"
    broken.write_bytes(b"no trace at all")
    with pytest.raises(streamsan.TraceError, match=r"broken\.sstrace"):
        _core.read_events(str(broken))


def test_the_command_is_the_module():
    done = subprocess.run(
        [sys.executable, "-m", "streamsan", "--version"], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout.split()[0]) == (0, "streamsan"), done.stderr


def test_stubs_name_everything_native():
    from streamsan import _core

    stub = Path(streamsan.__file__).with_name("_core.pyi").read_text()
    for name in dir(_core):
        if not name.startswith("__"):
            assert f"def {name}(" in stub or f"class {name}:" in stub, name
