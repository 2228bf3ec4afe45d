"""The build back end: builds the libraries that programs are run with, then leaves the rest to maturin.

A wheel needs four things from Rust: the module `streamsan._core`, the libraries that are preloaded, one for
the virtual device and one for a GPU, and the driver library of virtual runs. maturin builds the first and
takes the others as data.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import maturin

_ROOT = Path(__file__).resolve().parent.parent
_LIB = _ROOT / "python" / "streamsan" / "lib"
_LIBRARIES = {
    "libstreamsan_device.so": _LIB / "libstreamsan_device.so",
    "libstreamsan_forward.so": _LIB / "libstreamsan_forward.so",
    "libstreamsan_driver.so": _LIB / "virtual" / "libcuda.so.1",
}

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
build_sdist = maturin.build_sdist


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds a wheel and returns its file name."""
    _build_libraries()
    name: str = maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds an editable wheel and returns its file name."""
    _build_libraries()
    name: str = maturin.build_editable(wheel_directory, config_settings, metadata_directory)
    return name


def _build_libraries() -> None:
    """Builds the libraries and puts them where the package looks for them."""
    cargo = os.environ.get("CARGO", "cargo")
    packages = ["-p", "streamsan-device", "-p", "streamsan-forward", "-p", "streamsan-driver"]
    try:
        subprocess.run([cargo, "build", "--release", "--locked", *packages], cwd=_ROOT, check=True)
        metadata = subprocess.run(
            [cargo, "metadata", "--format-version", "1", "--no-deps"],
            cwd=_ROOT,
            check=True,
            stdout=subprocess.PIPE,
        )
    except FileNotFoundError:
        raise SystemExit(
            f"cannot build streamsan: `{cargo}` not found; install Rust from https://rustup.rs"
        ) from None
    target = Path(json.loads(metadata.stdout)["target_directory"]) / "release"
    for name, place in _LIBRARIES.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        # A process may have the old file mapped: it keeps it, the new one takes its name.
        fresh = place.with_name(place.name + ".new")
        shutil.copyfile(target / name, fresh)
        fresh.replace(place)
