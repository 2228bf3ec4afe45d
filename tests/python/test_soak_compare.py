"""What `tests/gpu/soak_compare.py` calls a difference between the plain and the recorded run."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parent.parent / "gpu" / "soak_compare.py"
SPECIFICATION = importlib.util.spec_from_file_location("soak_compare", FILE)
soak_compare = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(soak_compare)

SEEN = {"operations": 900, "lost": 0, "gaps": 0, "findings": [], "trace_bytes": 1, "check_seconds": 0.1}
MIB = 1 << 20


def row(turns, own=1, kept=40, loss=7.0):
    """A run whose memory grows by so many MiB in a turn."""
    values = [
        {
            "loss": loss - turn / 100,
            "own": (500 + own * turn) * MIB,
            "kept": kept * turn * MIB,
            "given": 56 * MIB,
        }
        for turn in range(turns)
    ]
    return {"seconds": 10.0, "steps": 40 * turns, "turns": values}


def test_growth_of_the_program_itself_is_no_difference():
    figures, wrong = soak_compare.compare(row(30), row(20), SEEN)
    assert wrong == []
    assert (figures["ok"], figures["compared_turns"], figures["equal_losses"]) == (True, 20, 20)
    assert figures["added_growth_mib"] == {"own": 0.0, "kept": 0.0, "given": 0.0}


@pytest.mark.parametrize(
    ("recorded", "seen", "said"),
    [
        (row(20, own=6), SEEN, "own memory grew by 85 MiB more than without the recorder"),
        (row(20, kept=44), SEEN, "device memory that torch keeps grew by 68 MiB more"),
        (row(20, loss=7.01), SEEN, "losses differ: by 1.4e-03 in the first turn"),
        (row(20), {**SEEN, "lost": 3}, "3 events were lost"),
        (row(20), {**SEEN, "findings": ["SS101", "SS101"]}, "findings: SS101"),
        (row(20), {**SEEN, "operations": 0}, "no operation was recorded"),
    ],
)
def test_what_the_recorder_adds_is_said(recorded, seen, said):
    figures, wrong = soak_compare.compare(row(30), recorded, seen)
    assert not figures["ok"]
    assert len(wrong) == 1 and said in wrong[0], wrong


def test_the_turns_that_are_shown_are_the_first_the_last_and_some_between():
    assert soak_compare.points(3) == [0, 1, 2]
    assert soak_compare.points(181) == [0, 26, 51, 77, 103, 129, 154, 180]
