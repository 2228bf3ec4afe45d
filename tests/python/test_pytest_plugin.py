"""`pytest --streamsan`, in sessions of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest

pytest.importorskip("torch")

# What tests use. The hazard's later operation is in `race`.
HELPERS = """
import os, signal, subprocess, sys
import pytest, torch

def race():
    x = torch.ones(4, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        x + 1
    torch.cuda.synchronize()

def ordered():
    x = torch.ones(4, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x + 1
    torch.cuda.synchronize()
"""

# Each test, with the words for it in the summary.
TESTS = """
from helpers import *

def test_ordered():  # PASSED
    ordered()

def test_race():  # HAZARD
    race()

def test_no_device():  # PASSED
    assert "torch" in sys.modules

def test_own_failure():  # FAILED
    race()
    assert False, "its own"

@pytest.mark.xfail(reason="known")
def test_expected():  # XFAIL
    race()

@pytest.mark.xfail(reason="known", strict=True)
def test_expected_strictly():  # XFAIL
    race()

def test_skips_late():  # HAZARD
    race()
    pytest.skip("late")

@pytest.fixture
def racing_end():
    yield
    race()

def test_teardown(racing_end):  # PASSED HAZARD
    pass

@pytest.mark.streamsan(ignore=["SS101"])
def test_ignored():  # PASSED
    race()

@pytest.mark.streamsan(ignore=["SS2"])
def test_another_rule_ignored():  # HAZARD
    race()

@pytest.mark.no_streamsan(reason="its race is what it tests")
def test_silent():  # PASSED
    race()
    subprocess.run([sys.executable, "-c", "import helpers; helpers.race()"], check=True)

@pytest.mark.streamsan(ignore=["SS777"])
def test_unknown_rule():  # ERROR
    pass

@pytest.mark.streamsan("SS101")
def test_wrong_form():  # ERROR
    pass

@pytest.mark.no_streamsan
def test_without_reason():  # ERROR
    pass

def test_starts_a_process():  # PASSED
    subprocess.run([sys.executable, "-c", "import helpers; helpers.race()"], check=True)

def test_forks():  # HAZARD
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    race()
"""


FIXTURES = """
from helpers import *

@pytest.fixture(scope="module")
def racing_setup():
    race()

def test_the_first(racing_setup):  # HAZARD
    pass

def test_the_second(racing_setup):  # PASSED
    ordered()
"""


def expected():
    """What the tests say themselves."""
    words = {}
    for name, said in re.findall(r"def (test_\w+)\(.*\):  # ([A-Z ]+)$", TESTS + FIXTURES, re.MULTILINE):
        words[name] = said.split()
    return words


class Folder:
    def __init__(self, path):
        self.path = path
        self.temporary = path / "temporary"
        self.temporary.mkdir()
        (path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
        (path / "helpers.py").write_text(HELPERS)

    def pytest(self, *options, command=("-m", "pytest"), environment=None, status=None):
        done = subprocess.run(
            [sys.executable, *command, *options],
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=600,
            env={**os.environ, "TMPDIR": str(self.temporary), "COLUMNS": "120", **(environment or {})},
        )
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return done

    def left(self):
        """The folders of traces that are still there."""
        return sorted(self.temporary.glob("streamsan-*"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for variable in ("PYTEST_ADDOPTS", "PYTHONWARNINGS", "GITHUB_ACTIONS"):
        monkeypatch.delenv(variable, raising=False)
    return Folder(tmp_path)


def words(output):
    """By test, the words of the short summary."""
    said = {}
    for word, name in re.findall(r"^([A-Z]+) test_\w+\.py::(test_\w+)", output, re.MULTILINE):
        said.setdefault(name, []).append(word)
    return {name: sorted(set(said), key=said.index) for name, said in said.items()}


@pytest.mark.parametrize("options", [[], ["-n", "2", "--dist", "loadfile"]], ids=["alone", "xdist"])
def test_what_becomes_of_tests(folder, options):
    if options:
        pytest.importorskip("xdist", reason="no pytest-xdist: scripts/ensure_tools.py")
    (folder.path / "test_all.py").write_text(TESTS)
    (folder.path / "test_fixtures.py").write_text(FIXTURES)
    strict = ["--strict-markers", "-p", "no:cacheprovider", "-p", "no:randomly", "-W", "error", "-rA"]
    strict += ["--junitxml=junit.xml", "--streamsan-report=report"]
    done = folder.pytest("--streamsan", *strict, *options, status=1)
    output = done.stdout
    said = words(output)
    # Not in order of phases: the summary has failures first.
    assert {name: sorted(one) for name, one in said.items()} == {
        name: sorted(one) for name, one in expected().items()
    }, output

    assert re.search(
        r"^HAZARD test_all.py::test_race - SS101 helpers.py:6 -> helpers.py:8$", output, re.MULTILINE
    )
    assert "streamsan: 1 error" in output and "with the fixes of this report in place" in output
    assert '"SS777": no such rule' in output
    assert 'write it as @pytest.mark.streamsan(ignore=["SS102"])' in output
    assert 'needs a reason: write it as @pytest.mark.no_streamsan(reason="' in output
    assert "streamsan: a process that test_all.py::test_starts_a_process started: 1 error" in output
    assert "a process that test_all.py::test_silent" not in output
    assert "in 7 of 13 tests with CUDA operations" in output and "and in 1 place outside of tests" in output

    cases = {case.get("name"): case for case in Xml.parse(folder.path / "junit.xml").iter("testcase")}
    assert cases["test_race"].find("failure").get("message") == "SS101 helpers.py:6 -> helpers.py:8"

    report = folder.path / "report"
    traces = sorted(path.name for path in report.glob("*.sstrace"))
    for name in ("test_race", "test_own_failure", "test_teardown-teardown", "test_starts_a_process-process"):
        [trace] = [trace for trace in traces if trace.endswith(f"_{name}.sstrace")]
        for suffix in (".html", ".sarif"):
            assert (report / trace).with_suffix(suffix).stat().st_size > 1000
    assert len(traces) == 8, traces
    results = json.loads((report / "streamsan.sarif").read_text())["runs"][0]["results"]
    assert {result["ruleId"] for result in results} == {"SS101"}
    assert folder.left() == []


def test_off_it_costs_nothing_and_says_nothing(folder):
    (folder.path / "test_off.py").write_text(
        """
import sys
import pytest

@pytest.mark.streamsan(ignore=["SS101"])
@pytest.mark.no_streamsan(reason="none")
def test_nothing_is_loaded():
    loaded = {name for name in sys.modules if name.startswith("streamsan")}
    assert loaded <= {"streamsan", "streamsan._errors", "streamsan._pytest_plugin"}
    assert "torch" not in sys.modules
"""
    )
    done = folder.pytest("--strict-markers", "-W", "error", status=0)
    assert "streamsan:" not in done.stdout and folder.left() == []
    assert "--streamsan-report=DIR" in folder.pytest("--streamsan", "--help", status=0).stdout


WARNING = """
from helpers import *

def test_freed_too_early():
    side = torch.cuda.Stream()
    spare, keep, x, last = (torch.ones(1 << 20, device="cuda") for _ in range(4))
    torch.cuda.synchronize()
    del spare
    with torch.cuda.stream(side):
        total = x.sum()
    del x
    y = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()

def test_twice():
    test_freed_too_early()
"""


def test_settings(folder):
    (folder.path / "test_warning.py").write_text(WARNING)
    ini = folder.path / "pytest.ini"
    ini.write_text(ini.read_text() + "streamsan = true\n")
    output = folder.pytest(status=0).stdout
    assert "warning: test_warning.py::test_freed_too_early - SS203 test_warning.py:10" in output
    assert "no hazards in 2 tests" in output
    ini.write_text(ini.read_text() + "streamsan_error_on_warning = true\n")
    output = folder.pytest("-k", "early", status=1).stdout
    assert "HAZARD test_warning.py::test_freed_too_early - SS203" in output
    assert folder.left()


def test_the_settings_of_the_project_count(folder):
    (folder.path / "test_it.py").write_text(
        "from helpers import *\n@pytest.mark.streamsan(ignore=['SS202'])\ndef test_race(): race()\n"
    )
    project = folder.path / "pyproject.toml"
    project.write_text("[tool.streamsan]\nignore = ['SS101']\n")
    folder.pytest("--streamsan", status=0)
    project.write_text("[tool.streamsan]\nigonre = ['SS101']\n")
    done = folder.pytest("--streamsan", status=4)
    assert "pyproject.toml:2: unknown key `igonre` in [tool.streamsan]" in done.stderr
    assert "did you mean `ignore`?" in done.stderr


def test_sections_are_there_when_output_is_not_shown(folder):
    (folder.path / "test_it.py").write_text("from helpers import *\ndef test_race(): race()\n")
    output = folder.pytest("--streamsan", "--show-capture=no", "-s", "--tb=short", "-q", status=1).stdout
    assert output.count("error[SS101]: unordered read-after-write") == 1
    assert "HAZARD test_it.py::test_race" in output
    [traces] = folder.left()
    again = re.search(r"^again: streamsan check (.*)$", output, re.MULTILINE).group(1)
    assert Path(again).parent == traces
    done = folder.pytest("check", again, command=["-m", "streamsan"], status=1)
    assert "error[SS101]" in done.stdout


def test_traces_with_hazards_do_not_fill_the_disk(folder):
    (folder.path / "conftest.py").write_text("from streamsan._testing import ending\nending._ROOM = 1000\n")
    (folder.path / "test_it.py").write_text("from helpers import *\ndef test_race(): race()\n")
    output = folder.pytest("--streamsan", "--streamsan-report=report", status=1).stdout
    assert "error[SS101]" in output and "not kept: 1 trace with hazards" in output and "again:" not in output
    names = {path.suffix for path in (folder.path / "report").iterdir()}
    assert names == {".html", ".sarif"} and not folder.left()


def test_a_crash_leaves_a_readable_trace(folder):
    (folder.path / "test_it.py").write_text(
        "from helpers import *\n"
        "def test_before(): ordered()\n"
        "def test_crash():\n    race()\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    done = folder.pytest("--streamsan", status=-signal.SIGSEGV)
    [traces] = folder.left()
    assert f"traces in {traces}" in done.stdout
    done = folder.pytest("check", str(traces / "main.sstrace"), command=["-m", "streamsan"], status=1)
    assert "helpers.py:8" in done.stdout


def test_a_worker_that_crashes_is_checked(folder):
    pytest.importorskip("xdist", reason="no pytest-xdist: scripts/ensure_tools.py")
    (folder.path / "test_it.py").write_text(
        "from helpers import *\ndef test_crash():\n    race()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    output = folder.pytest("--streamsan", "-n", "1", status=1).stdout
    assert "worker 'gw0' crashed" in output
    assert "streamsan: a process that no test started, or a worker that crashed: 1 error" in output
    assert "helpers.py:8" in output and len(folder.left()) == 1


def test_what_no_test_did(folder):
    (folder.path / "test_it.py").write_text(
        "from helpers import *\nrace()\n"
        "child = [sys.executable, '-c', 'import helpers; helpers.race()']\n"
        "subprocess.run(child, check=True)\n"
        "def test_ordered(): ordered()\n"
    )
    output = folder.pytest("--streamsan", status=1).stdout
    assert "streamsan: outside of tests: 1 error" in output
    assert "streamsan: a process that no test started, or a worker that crashed: 1 error" in output
    assert "= 1 passed in" in output and "hazards in 2 places outside of tests" in output


def test_the_whole_run_is_checked_again(folder):
    """A live check that is blind stands for one with a fault."""
    (folder.path / "conftest.py").write_text(
        """
from streamsan._testing.follow import Follower
take = Follower._take

def blind(self):
    first, last, found, complete = take(self)
    return first, last, set(), True

Follower._take = blind
"""
    )
    (folder.path / "test_it.py").write_text("from helpers import *\ndef test_race(): race()\n")
    output = folder.pytest("--streamsan", status=1).stdout
    title = "streamsan: found when the whole run was checked again: SS101 helpers.py:6 -> helpers.py:8"
    assert title in output and "1 passed" in output


FORKS = """
import json, os
import pytest
from _pytest.runner import runtestprotocol

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    to_read, to_write = os.pipe()
    child = os.fork()
    if child == 0:
        reports = runtestprotocol(item, log=False)
        sent = [item.config.hook.pytest_report_to_serializable(config=item.config, report=one) for one in reports]
        with open(to_write, "w") as file:
            json.dump(sent, file)
        os._exit(0)
    os.close(to_write)
    with open(to_read) as file:
        received = json.load(file)
    os.waitpid(child, 0)
    for one in received:
        report = item.config.hook.pytest_report_from_serializable(config=item.config, data=one)
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""


def test_tests_in_forked_processes_are_counted_as_not_checked(folder):
    (folder.path / "conftest.py").write_text(FORKS)
    (folder.path / "test_it.py").write_text("from helpers import *\ndef test_race(): race()\n")
    output = folder.pytest("--streamsan", status=0).stdout
    assert "1 passed" in output and "not checked: 1 test in processes that were forked" in output
    assert "no hazards" not in output


def test_under_streamsan_run_it_is_not_started_again(folder):
    (folder.path / "test_it.py").write_text("from helpers import *\ndef test_race(): race()\n")
    run = ["-m", "streamsan", "run", "--no-check", "-o", "run.sstrace", "-m", "pytest", "--streamsan"]
    output = folder.pytest(command=run, status=1).stdout
    assert "HAZARD test_it.py::test_race" in output
    assert (folder.path / "run.sstrace").exists()


def test_a_program_that_calls_pytest_is_told_what_to_do(folder):
    (folder.path / "test_it.py").write_text("from helpers import *\ndef test_race(): race()\n")
    (folder.path / "program.py").write_text(
        "import sys, pytest\nsys.exit(pytest.main(['--streamsan', 'test_it.py']))\n"
    )
    done = folder.pytest(command=["program.py"], status=4)
    assert "start that program as `streamsan run --no-check PROGRAM`" in done.stderr
    run = ["-m", "streamsan", "run", "--no-check", "-o", "run.sstrace", "program.py"]
    assert "HAZARD test_it.py::test_race" in folder.pytest(command=run, status=1).stdout


def test_where_nothing_can_be_recorded_an_option_is_an_error_and_a_setting_is_not(folder):
    other = folder.path / "other" / "torch"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    (other / "version.py").write_text("__version__ = '2.11.0+cpu'\ncuda = None\nhip = None\n")
    (folder.path / "test_it.py").write_text("def test_nothing(): pass\n")
    path = {"PYTHONPATH": str(other.parent)}
    done = folder.pytest("--streamsan", environment=path, status=4)
    assert "is a CPU-only build" in done.stderr and "help: " in done.stderr
    ini = folder.path / "pytest.ini"
    ini.write_text(ini.read_text() + "streamsan = true\n")
    output = folder.pytest(environment=path, status=0).stdout
    assert "`streamsan = true`, but nothing is checked: torch 2.11.0+cpu" in output
    assert folder.left() == []


def test_without_a_gpu_the_option_for_it_is_an_error_and_the_setting_is_not(folder):
    (folder.path / "test_it.py").write_text("def test_nothing(): pass\n")
    nowhere = {"CUDA_VISIBLE_DEVICES": ""}
    done = folder.pytest("--streamsan", "--streamsan-device=cuda", environment=nowhere, status=4)
    assert "cannot record on a GPU" in done.stderr and "help: --streamsan-device=virtual" in done.stderr
    ini = folder.path / "pytest.ini"
    before = ini.read_text()
    ini.write_text(before + "streamsan = true\nstreamsan_device = cuda\n")
    output = folder.pytest(environment=nowhere, status=0).stdout
    assert "`streamsan = true`, but nothing is checked: cannot record on a GPU" in output
    ini.write_text(before + "streamsan_device = gpu\n")
    done = folder.pytest("--streamsan", status=4)
    assert "streamsan_device = gpu: it is one of auto, virtual, cuda" in done.stderr
    assert folder.left() == []


def test_on_a_gpu(folder):
    """The virtual device stands for NVIDIA's driver and runtime; what records is what records on a GPU."""
    import streamsan

    libraries = Path(streamsan.__file__).parent / "lib"
    device = str(libraries / "libstreamsan_device.so")
    stand_in = {
        "LD_PRELOAD": device,
        "LD_LIBRARY_PATH": str(libraries / "virtual"),
        "STREAMSAN_RUNTIME": device,
    }
    (folder.path / "test_it.py").write_text(
        "from helpers import *\ndef test_race(): race()\ndef test_ordered(): ordered()\n"
    )
    for chosen in ("auto", "cuda"):
        options = ("--streamsan", f"--streamsan-device={chosen}")
        output = folder.pytest(*options, environment=stand_in, status=1).stdout
        assert "streamsan: recorded on the GPU" in output
        assert words(output) == {"test_race": ["HAZARD"]}
        assert "1 passed" in output and "1 failed" in output


def test_nothing_recorded_is_said(folder):
    (folder.path / "test_it.py").write_text("def test_nothing(): pass\n")
    output = folder.pytest("--streamsan", status=0).stdout
    assert "no CUDA operation was recorded in any test, so nothing was checked" in output
