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
    subprocess.run(run, cwd=ROOT, check=True, capture_output=True, timeout=300)
    check = [*command, "check", "--output-format", "json", trace]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    lines = (ROOT / program).read_text().splitlines()
    fixes = [finding["fix"] for finding in json.loads(done.stdout)["findings"]]
    assert all(fix["verified"] for fix in fixes)
    # The read is in `double`, which knows no stream; its caller knows both.
    assert fixes[0]["insert"] == "compute.wait_stream(up)"
    assert lines[fixes[0]["line"] - 1].strip() == "y = function(x)"


INSIDE = """\
import torch


class Loader:
    def __init__(self):
        self.stream = torch.cuda.Stream()

    def load(self, host):
        with torch.cuda.stream(self.stream):
            return host.to("cuda", non_blocking=True)


host = torch.ones(1000).pin_memory()
loader = Loader()
twice = [loader.load(host) * 2]
"""


def test_a_statement_that_issues_both_has_to_be_split(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(INSIDE)
    trace = str(tmp_path / "run.sstrace")
    command = [sys.executable, "-m", "streamsan"]
    run = [*command, "run", "--device", "virtual", "--no-check", "-o", trace, str(program)]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    check = [*command, "check", "--output-format", "json", trace]
    done = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    (finding,) = json.loads(done.stdout)["findings"]
    assert finding["rule"] == "SS101"
    assert not finding["fix"]["verified"]
    text = subprocess.run(
        [*command, "check", trace], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "(1) is issued by this line too: split it and wait between the two parts" in text.stdout
