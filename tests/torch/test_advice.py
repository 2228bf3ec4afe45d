"""Advice: scripts that say where it is due, and programs that are right and must be left alone.

`advice/` has scripts with comments like those of `fail/`: `# advice: [SS703]` on each line that advice is about. All other
lines, and the whole of a script without such a comment, must get none.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from device import DEVICE, options
from test_scripts import expectations, findings, scripts, user_line

pytest.importorskip("torch")


@pytest.mark.parametrize("file", scripts("advice"))
def test_advice(file, tmp_path):
    report = findings(file, tmp_path, command="advise")
    found = [
        (finding["rule"], finding["level"], None, user_line(finding["second"], file))
        for finding in report["findings"]
    ]
    assert sorted(found) == expectations(file.read_text())
    for finding in report["findings"]:
        assert finding["advice"]["executions"] >= finding["count"] > 0
        assert finding["fix"]["verified"] or finding["fix"]["where"] != "remove", finding["fix"]


ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "advice.md").read_text()
TRAIN = """
import torch
side = torch.cuda.Stream()
x = torch.ones(4, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    side.wait_stream(torch.cuda.default_stream())
    y = x + 1
"""


def test_commands_of_the_page(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    commands = re.search(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1].splitlines()
    assert len(commands) == 3
    for command in commands:
        name, verb, *words = command.split()
        assert name == "streamsan"
        device = options() if verb == "run" else []
        done = subprocess.run(
            [sys.executable, "-m", "streamsan", verb, *device, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert verb == "run" or "note[SS703]" in done.stdout, done.stdout
        assert "SS703" not in done.stderr, "`run` gives no advice"


@pytest.mark.skipif(DEVICE != "virtual", reason="the page shows a virtual run")
def test_what_the_page_shows(tmp_path):
    trace = tmp_path / "run.sstrace"
    streamsan = [sys.executable, "-m", "streamsan"]
    script = str(ROOT / "examples" / "prefetcher" / "fixed.py")
    run = [*streamsan, "run", *options(), "--no-check", "-o", str(trace), script]
    assert subprocess.run(run, capture_output=True, timeout=300).returncode == 0
    said = subprocess.run(
        [*streamsan, "advise", str(trace)], capture_output=True, text=True, timeout=300, check=True
    )
    shown = re.search(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    assert shown in said.stdout, said.stdout


# What is said of examples that are right, by hand found to be so.
EXAMPLES = {"loader_compute": ["SS704"]}
FIXED = sorted((ROOT / "examples").glob("*/fixed.py"))
assert len(FIXED) > 5


@pytest.mark.parametrize("script", [pytest.param(file, id=file.parent.name) for file in FIXED])
def test_examples_that_are_right(script, tmp_path):
    trace = tmp_path / "run.sstrace"
    streamsan = [sys.executable, "-m", "streamsan"]
    devices = 2 if script.parent.name == "gradient_bucket" else 1
    run = [*streamsan, "run", *options(devices), "--no-check", "-o", str(trace), str(script)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    advise = [*streamsan, "advise", "--output-format", "json", str(trace)]
    said = subprocess.run(advise, capture_output=True, text=True, timeout=300, check=True)
    report = json.loads(said.stdout)
    rules = [finding["rule"] for finding in report["findings"]]
    assert rules == EXAMPLES.get(script.parent.name, [])
    [measures] = report["measures"]
    assert 0 < measures["longest_chain"] <= measures["operations"] == report["coverage"]["operations"]
