"""The GitHub Action and the pre-commit hooks: their commands, as their files say them."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from sample_traces import BAD, FIXED, write

yaml = pytest.importorskip("yaml", reason="no PyYAML: scripts/ensure_tools.py")

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action" / "action.yml").read_text())
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
# Only `pip install` is left out.
PYTHON = """#!/bin/bash
if [[ $1 == -m && $2 == pip ]]; then printf '%s\\n' "$*" >> "$INSTALLED"; else exec {python} "$@"; fi
"""
COMMAND = """#!/bin/bash
exec {python} -m {module} "$@"
"""
# SS203 is a warning.
WARNING = """
streams default, side
default: alloc x 4MiB
default: write x
default: record ready
side: wait ready
side: read x
host: free x
default: alloc y 4MiB
default: write y
"""


class Runner:
    """A machine that runs the steps of the action."""

    def __init__(self, path):
        self.path = path / "work space"
        self.path.mkdir()
        self.commands = path / "commands"
        self.commands.mkdir()
        self.installed = path / "installed"
        self.installed.touch()
        texts = {"python": PYTHON.format(python=sys.executable)}
        for module in ("pytest", "streamsan"):
            texts[module] = COMMAND.format(python=sys.executable, module=module)
        for name, text in texts.items():
            (self.commands / name).write_text(text)
            (self.commands / name).chmod(0o755)

    def act(self, **given):
        """Runs the steps; returns the status and what was said."""
        inputs = {name: one["default"] for name, one in ACTION["inputs"].items()}
        unknown = set(given) - {name.replace("-", "_") for name in inputs}
        assert not unknown, unknown
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment |= {
            "PATH": f"{self.commands}:{environment['PATH']}",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT / "action"),
            "INSTALLED": str(self.installed),
        }
        output = ""
        for step in ACTION["runs"]["steps"]:
            if "run" not in step or not holds(step.get("if"), inputs):
                continue
            assert step["shell"] == "bash"
            own = {key: filled(value, inputs) for key, value in step.get("env", {}).items()}
            assert "${{" not in step["run"], "inputs come as variables: what they hold is not to be run"
            # As GitHub runs `shell: bash`.
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
                cwd=self.path,
                env=environment | own,
                capture_output=True,
                text=True,
                timeout=300,
            )
            output += done.stdout + done.stderr
            if done.returncode != 0:
                return done.returncode, output
        return 0, output

    def rules(self, folder="streamsan-report"):
        [run] = json.loads((self.path / folder / "streamsan.sarif").read_text())["runs"]
        return sorted(result["ruleId"] for result in run["results"])


def filled(value, inputs):
    return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found.group(1)], value)


def holds(condition, inputs):
    if condition is None:
        return True
    name = re.fullmatch(r"\$\{\{ inputs\.([\w-]+) != '' \}\}", condition).group(1)
    return inputs[name] != ""


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


def test_traces_that_are_bad_and_good(runner):
    write(runner.path, "bad", BAD)
    write(runner.path, "fixed", FIXED)
    status, output = runner.act(check="*.sstrace")
    assert status == 1 and "::error file=" in output and "SS101" in output, output
    assert runner.rules() == ["SS101"]
    assert "SS101" in (runner.path / "streamsan-report" / "streamsan.html").read_text()
    assert runner.installed.read_text() == f"-m pip install {ROOT}/action/..\n"

    status, output = runner.act(check="fixed.sstrace", report="other folder", package="")
    assert status == 0 and "::error" not in output, output
    assert runner.rules("other folder") == []
    assert runner.installed.read_text() == f"-m pip install {ROOT}/action/..\n"


def test_warnings_and_what_is_known(runner):
    write(runner.path, "warning", WARNING)
    status, output = runner.act(check="warning.sstrace")
    assert status == 0 and "::warning file=" in output and runner.rules() == ["SS203"], output
    assert runner.act(check="warning.sstrace", error_on_warning="true")[0] == 1
    command = [
        sys.executable,
        "-m",
        "streamsan",
        "check",
        "warning.sstrace",
        "--write-baseline",
        "known.json",
    ]
    subprocess.run(command, cwd=runner.path, check=True, capture_output=True)
    status, output = runner.act(check="warning.sstrace", error_on_warning="true", baseline="known.json")
    assert status == 0 and runner.rules() == [], output


@pytest.mark.parametrize("given", [{}, {"run": "true", "check": "x.sstrace"}])
def test_either_a_command_or_traces(runner, given):
    status, output = runner.act(**given)
    assert status == 2 and "::error title=streamsan::give the action either 'run' or 'check'" in output


TESTS = """
import torch

def test_race():
    x = torch.ones(4, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        x + 1
    torch.cuda.synchronize()
"""


def test_a_command(runner):
    pytest.importorskip("torch")
    (runner.path / "pytest.ini").write_text("[pytest]\n")
    (runner.path / "test_it.py").write_text(TESTS)
    status, output = runner.act(run="pytest --streamsan")
    assert status == 1 and "HAZARD test_it.py::test_race" in output and "::error file=test_it.py" in output
    assert runner.rules() == ["SS101"]
    [trace] = (runner.path / "streamsan-report").glob("*.sstrace")
    command = [
        sys.executable,
        "-m",
        "streamsan",
        "check",
        str(trace),
        "--write-baseline",
        "known findings.json",
    ]
    subprocess.run(command, cwd=runner.path, check=True, capture_output=True)
    status, output = runner.act(run="pytest test_it.py", baseline="known findings.json", report="two words")
    assert status == 0 and "no hazards in 1 test" in output, output
    assert runner.rules("two words") == []
    assert runner.act(run="false | true")[0] == 1


def test_uploads_come_after_and_also_if_the_run_failed():
    steps = ACTION["runs"]["steps"]
    uploads = [step for step in steps if "uses" in step]
    assert steps[-len(uploads) :] == uploads
    assert {step["uses"].split("@")[0] for step in uploads} == {
        "github/codeql-action/upload-sarif",
        "actions/upload-artifact",
    }
    assert all("!cancelled()" in step["if"] for step in uploads)


def hook(name, folder, *files):
    """Runs a hook as pre-commit does, on the files that it is for."""
    wanted = [file for file in files if re.search(HOOKS[name]["files"], file)]
    words = shlex.split(HOOKS[name]["entry"])
    command = {"python": [sys.executable], "streamsan": [sys.executable, "-m", "streamsan"]}[words[0]]
    done = subprocess.run(
        [*command, *words[1:], *wanted], cwd=folder, capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


def test_hook_for_traces(tmp_path):
    write(tmp_path, "bad", BAD)
    write(tmp_path, "fixed", FIXED)
    status, output = hook("streamsan-check", tmp_path, "fixed.sstrace", "README.md")
    assert status == 0, output
    status, output = hook("streamsan-check", tmp_path, "fixed.sstrace", "bad.sstrace")
    assert status == 1 and "error[SS101]" in output


def test_hook_for_settings(tmp_path):
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.streamsan]\nignore = ['SS101']\n")
    (below / "pyproject.toml").write_text("[tool.streamsan]\nignore = ['SS1O1']\n")
    files = ("pyproject.toml", "setup.py")
    assert hook("streamsan-config", tmp_path, *files) == (0, "")
    status, output = hook("streamsan-config", tmp_path, *files, "below/pyproject.toml")
    assert status == 1
    assert output == (
        "below/pyproject.toml:2: there is no rule `SS1O1` (in `ignore`)\nhelp: did you mean `SS101`?\n"
    )


def test_the_guide_has_the_same_hooks():
    guide = (ROOT / "docs" / "ci.md").read_text()
    [block] = [block for block in re.findall(r"^```yaml\n(.*?)^```$", guide, re.M | re.S) if "repo:" in block]
    [local] = yaml.safe_load(block)["repos"]
    assert local["repo"] == "local"
    for hook in local["hooks"]:
        wanted = HOOKS[hook["id"]]
        assert {key: hook[key] for key in ("name", "entry", "files")} == {
            key: wanted[key] for key in ("name", "entry", "files")
        }
    assert {hook["id"] for hook in local["hooks"]} == set(HOOKS)
