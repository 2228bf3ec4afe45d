"""Where the programs of these tests run: on the virtual device, or with STREAMSAN_TEST_DEVICE=cuda on a GPU."""

import os

import pytest

DEVICE = os.environ.get("STREAMSAN_TEST_DEVICE", "virtual")


def options(devices=1):
    """The options of `streamsan run` for so many devices; skips where there are fewer GPUs."""
    if DEVICE == "virtual":
        return ["--device", "virtual", "--device-count", str(devices)]
    torch = pytest.importorskip("torch")
    if torch.cuda.device_count() < int(devices):
        pytest.skip(f"needs {devices} GPUs, {torch.cuda.device_count()} are here")
    return ["--device", DEVICE]


def on_this_device(words):
    """Takes a command line's options for the virtual device out if it is not the one; skips as `options` does."""
    left, devices = list(words), 1
    if DEVICE != "virtual":
        for name in ("--device-memory", "--device-count"):
            if name in left:
                at = left.index(name)
                devices = int(left[at + 1]) if name == "--device-count" else devices
                del left[at : at + 2]
        options(devices)
    return left
