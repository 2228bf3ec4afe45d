"""Kernels of Triton, of the program itself and of Inductor: recorded with what they touch, not computed."""

import pytest
from device import DEVICE
from test_scripts import HERE, assert_expected, findings

pytest.importorskip("triton")


def not_computed(report):
    """Names of the kernels whose results are missing; nothing else may be. On a GPU none is."""
    reasons = {gap["reason"] for gap in report["gaps"]}
    assert reasons == ({"not-computed"} if DEVICE == "virtual" else set()), report["gaps"]
    return {gap["detail"] for gap in report["gaps"]}


def test_accesses_are_read_off_the_code(tmp_path):
    report = findings(HERE / "launches" / "triton_kernels.py", tmp_path)
    assert report["findings"] == []
    assert not_computed(report) == ({"gather"} if DEVICE == "virtual" else set())


@pytest.mark.parametrize("name", ["triton_races", "inductor_races"])
def test_races_are_found(name, tmp_path):
    file = HERE / "launches" / f"{name}.py"
    report = findings(file, tmp_path)
    assert_expected(file, report)
    not_computed(report)
