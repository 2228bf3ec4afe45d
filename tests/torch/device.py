"""Where the programs of these tests run: on the virtual device, or with STREAMSAN_TEST_DEVICE=cuda on a GPU."""

import os

DEVICE = os.environ.get("STREAMSAN_TEST_DEVICE", "virtual")


def options(devices=1):
    """The options of `streamsan run`; a GPU machine has as many devices as it has."""
    if DEVICE == "virtual":
        return ["--device", "virtual", "--device-count", str(devices)]
    return ["--device", DEVICE]
