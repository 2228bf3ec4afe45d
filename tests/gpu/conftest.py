"""Tests that need a GPU. Without one each is skipped, for one reason."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items):
    if torch.cuda.device_count() > 0:
        return
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.skip(reason="there is no GPU here"))
