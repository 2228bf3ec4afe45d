"""Where a fix goes: to a line that can name the streams, also if the operation is in a function that cannot."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_line_that_knows_the_streams(tmp_path):
    trace = str(tmp_path / "run.sstrace")
    command = [sys.executable, "-m", "streamsan"]
    program = "examples/streaming/bad.py"
    run = [*command, "run", "--device", "virtual", "--no-check", "-o", trace, program]
    subprocess.run(run, cwd=ROOT, check=True, capture_output=True, timeout=120)
    check = [*command, "check", "--output-format", "json", trace]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    lines = (ROOT / program).read_text().splitlines()
    fixes = [finding["fix"] for finding in json.loads(done.stdout)["findings"]]
    assert all(fix["verified"] for fix in fixes)
    # The read is in `double`, which knows no stream; its caller knows both.
    assert fixes[0]["insert"] == "compute.wait_stream(up)"
    assert lines[fixes[0]["line"] - 1].strip() == "y = function(x)"
