"""The sample repository: what its workflow runs, on changes that are good and bad."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
yaml = pytest.importorskip("yaml", reason="no PyYAML: scripts/ensure_tools.py")

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ci"
REPORT = "streamsan-report"


class Checkout:
    """The sample repository as a runner has it."""

    def __init__(self, path):
        self.path = path / "work"
        shutil.copytree(SAMPLE, self.path, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
        self.commands = path / "commands"
        self.commands.mkdir()
        for name, module in [("pytest", "pytest"), ("streamsan", "streamsan"), ("python", None)]:
            script = self.commands / name
            run = f'exec {sys.executable} -m {module} "$@"' if module else PYTHON
            script.write_text(f"#!/bin/bash\n{run}\n")
            script.chmod(0o755)
        self.installed = path / "installed"

    def apply(self, change):
        patch = (SAMPLE / "changes" / f"{change}.patch").read_bytes()
        command = ["git", "apply", "--whitespace=error", "-"]
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.path.parent)}
        subprocess.run(command, cwd=self.path, input=patch, check=True, env=environment)

    def line(self, file, code):
        """The file, and the number of its only line with this code."""
        lines = (self.path / file).read_text().splitlines()
        [number] = [number for number, line in enumerate(lines, 1) if code in line]
        return file, number

    def run(self, command, status=0):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment |= {
            "PATH": f"{self.commands}:{environment['PATH']}",
            "GITHUB_ACTIONS": "true",
            "INSTALLED": str(self.installed),
        }
        # As GitHub runs the steps of a workflow.
        shell = ["bash", "-e", "-c", command]
        done = subprocess.run(
            shell, cwd=self.path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def workflow(self, status):
        """Runs the commands of the workflow; all but the last one have to succeed."""
        *before, last = commands()
        for command in before:
            self.run(command)
        return self.run(last, status)

    def results(self):
        """What would be uploaded, as rules with places."""
        document = json.loads((self.path / uploaded()).read_text())
        [run] = document["runs"]
        places = [(result["ruleId"], result["locations"][0]["physicalLocation"]) for result in run["results"]]
        return sorted(
            (rule, place["artifactLocation"]["uri"], place["region"]["startLine"]) for rule, place in places
        )


# `python -m pip install …` only says what it would install.
PYTHON = f"""
if [[ $1 == -m && $2 == pip ]]; then echo "$@" >> "$INSTALLED"; else exec {sys.executable} "$@"; fi
"""


def steps():
    [workflow] = (SAMPLE / ".github" / "workflows").glob("*.yml")
    [job] = yaml.safe_load(workflow.read_text())["jobs"].values()
    return job["steps"]


def commands():
    return [step["run"] for step in steps() if "run" in step]


def uploaded():
    [file] = [step["with"]["sarif_file"] for step in steps() if "upload-sarif" in step.get("uses", "")]
    return file


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def annotations(output):
    return re.findall(r"^::error file=([^,]+),line=(\d+),.*title=(SS\d+)", output, re.MULTILINE)


def test_a_good_change_passes(checkout):
    checkout.apply("good")
    output = checkout.workflow(status=0)
    assert "no hazards in 2 tests with CUDA operations" in output
    assert annotations(output) == [] and checkout.results() == []
    # Where streamsan comes from is a variable of the repository, which is empty here.
    assert checkout.installed.read_text().split() == "-m pip install torch numpy pytest".split()
    [install] = [step for step in steps() if step.get("name") == "Install"]
    assert install["env"] == {"STREAMSAN": "${{ vars.STREAMSAN }}"} and '"$STREAMSAN"' in install["run"]


def test_a_bad_change_fails_and_a_baseline_hides_what_is_known_and_only_that(checkout):
    checkout.apply("bad")
    output = checkout.workflow(status=1)
    known = [
        ("SS101", *checkout.line("prefetch/__init__.py", "self._sum += batch.mean()")),
        ("SS101", *checkout.line("tests/test_prefetch.py", "batch.sum() for batch")),
    ]
    assert "HAZARD tests/test_prefetch.py::test_mean" in output and "2 failed, 1 passed" in output
    assert sorted(annotations(output)) == [(file, str(line), rule) for rule, file, line in known]
    assert checkout.results() == known
    pages = [page.read_text() for page in (checkout.path / REPORT).glob("*.html")]
    assert len(pages) == 2 and all("SS101" in page for page in pages)

    baseline = re.search(r"^(streamsan check .*--write-baseline .*)$", guide(), re.MULTILINE).group(1)
    checkout.run(baseline)
    project = checkout.path / "pyproject.toml"
    project.write_text(project.read_text().replace("ignore = []", 'baseline = "streamsan-baseline.json"'))
    shutil.rmtree(checkout.path / REPORT)
    output = checkout.workflow(status=0)
    assert "no hazards" in output and checkout.results() == [] and annotations(output) == []
    assert "not shown: 2 findings (known from the baseline, or of rules that are not reported)" in output

    checkout.apply("worse")
    output = checkout.workflow(status=1)
    new = [("SS101", *checkout.line("prefetch/__init__.py", "return self._sum / self._count"))]
    assert "HAZARD tests/test_prefetch.py::test_mean" in output and "1 failed, 2 passed" in output
    assert annotations(output) == [(file, str(line), rule) for rule, file, line in new]
    assert checkout.results() == new


def guide():
    return (SAMPLE.parents[1] / "docs" / "ci.md").read_text()


def test_the_guide_shows_the_workflow_of_the_sample():
    said = yaml.safe_load(re.search(r"```yaml\n(name: streams\n.*?)```", guide(), re.DOTALL).group(1))
    [workflow] = (SAMPLE / ".github" / "workflows").glob("*.yml")
    assert said == yaml.safe_load(workflow.read_text())


def test_nobody_is_contacted_but_those_whose_actions_are_used():
    used = [step["uses"] for step in steps() if "uses" in step]
    assert {one.split("@")[0] for one in used} == {
        "actions/checkout",
        "actions/setup-python",
        "actions/upload-artifact",
        "github/codeql-action/upload-sarif",
    }
    assert "http" not in "".join(commands())
