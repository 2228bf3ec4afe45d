"""Scripts that say what must be found in them: `fail/` on the lines of the findings, `pass/` nothing.

# (1)                              names this line
# error: [SS101] after (1)         the finding's later access is on this line, its earlier one on line (1)
# advice: [SS703]                  advice is given for this line (advice/, and pages of its rules)
    #@ gpus: 2                         it needs two devices
    #@ virtual: why                    what it expects holds on the virtual device only
"""

import json
import re
import subprocess
from pathlib import Path

import pytest
import ready_torch
from device import DEVICE, options

HERE = Path(__file__).resolve().parent
LABEL = re.compile(r"#\s*(?:.*\s)?\((\d+)\)\s*$")
DEVICES = re.compile(r"^#@ gpus: (\d+)$", re.MULTILINE)
VIRTUAL = re.compile(r"^#@ virtual: (.+)$", re.MULTILINE)
EXPECTATION = re.compile(r"#\s*(error|warning|advice): \[(SS\d{3})\](?: after \((\d+)\))?")


def expectations(source):
    """Returns the expected findings as (rule, level, earlier line or None, later line)."""
    lines = source.splitlines()
    labels = {}
    for number, line in enumerate(lines, 1):
        if (label := LABEL.search(EXPECTATION.sub("", line))) is not None:
            labels[label[1]] = number
    return sorted(
        (rule, "note" if level == "advice" else level, labels[earlier] if earlier else None, number)
        for number, line in enumerate(lines, 1)
        for level, rule, earlier in EXPECTATION.findall(line)
    )


def user_line(place, file):
    for frame in (place or {}).get("stack", []):
        if frame["file"].endswith(file.name):
            return frame["line"]
    return None


def findings(file, folder, *runner, command="check"):
    trace = folder / f"{file.stem}.sstrace"
    devices, virtual = DEVICES.search(file.read_text()), VIRTUAL.search(file.read_text())
    if virtual and DEVICE != "virtual":
        pytest.skip(virtual[1])
    run = [*ready_torch.command(), "run", *options(devices[1] if devices else 1)]
    run += ["--no-check", "-o", str(trace), *runner, str(file)]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    check = [*ready_torch.PLAIN, command, "--output-format", "json", str(trace)]
    done = subprocess.run(check, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def scripts(kind):
    found = sorted((HERE / kind).glob("*.py"))
    assert found, f"no scripts in {kind}/"
    return [pytest.param(file, id=file.stem) for file in found]


def assert_expected(file, report):
    """Checks that what was found is what the script expects."""
    expected = expectations(file.read_text())
    assert expected, "a script in fail/ needs an expectation"
    found = []
    for finding in report["findings"]:
        line = user_line(finding["second"], file)
        earlier = user_line(finding.get("first"), file)
        named = any(
            rule == finding["rule"] and later == line and first is None for rule, _, first, later in expected
        )
        found.append((finding["rule"], finding["level"], None if named else earlier, line))
        assert finding["fix"] is None or finding["fix"]["verified"], finding["fix"]
    assert sorted(found) == expected


@pytest.mark.parametrize("file", scripts("fail"))
def test_fail(file, tmp_path):
    assert_expected(file, findings(file, tmp_path))


@pytest.mark.parametrize("file", scripts("pass"))
def test_pass(file, tmp_path):
    assert not expectations(file.read_text()), "a script in pass/ has no expectation"
    report = findings(file, tmp_path)
    assert report["findings"] == []
    assert report["gaps"] == []
