"""Commands in the documents: each is run, or is one that a test runs elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md", "CONTRIBUTING.md"]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TRAIN = """
import torch
side = torch.cuda.Stream()
x = torch.ones(4, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = x + 1
"""


def commands(document):
    text = (ROOT / document).read_text()
    lines = [line.split("#")[0].strip() for block in BLOCK.findall(text) for line in block.splitlines()]
    return [line for line in lines if line]


def run(command, folder):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        command,
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1200,
        env={**os.environ, "PATH": path},
    )


def test_the_documents_name_only_these():
    known = {
        "make demo",
        "make test",
        "make fuzz-judge N=1000000",
        "pip install .",
        "streamsan run train.py",
    }
    assert {command for document in DOCUMENTS for command in commands(document)} == known


@pytest.mark.alone  # It installs the package that all tests use once more.
def test_make_demo():
    if os.environ.get("STREAMSAN_INSIDE_DEMO_TEST"):
        pytest.skip("this is the demo's own run")
    done = run("make demo", ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout + done.stderr
    assert "error[SS101]" in said
    assert "examples/loader_compute/bad.py" in said
    assert said.count("No hazards in what was seen") == 2


def test_make_test_is_what_runs_here():
    # Running it from itself would not end; what it would do is looked at.
    done = run("make -n test", ROOT)
    assert done.returncode == 0, done.stderr
    assert "pytest" in done.stdout and "cargo test" in done.stdout


def test_fuzz_judge():
    done = run("make -n fuzz-judge N=1000000", ROOT)
    assert done.returncode == 0 and "STREAMSAN_RANDOM_PROGRAMS=1000000" in done.stdout


def test_run_train(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    done = run("streamsan run train.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "No hazards in what was seen" in done.stderr


@pytest.mark.parametrize(
    "command", ["streamsan explain SS101", "streamsan explain limits", "streamsan doctor"]
)
def test_commands_in_the_text(command, tmp_path):
    assert any(command in (ROOT / document).read_text() for document in DOCUMENTS)
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_links_lead_somewhere():
    for document in [*DOCUMENTS, "ARCHITECTURE.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / document).read_text()):
            assert (ROOT / target).exists(), f"{document}: {target}"


SAMPLE = re.compile(
    r"^<!-- report of: (.+) -->\n```text\n(.*?)^```\n<!-- end of the report -->$", re.MULTILINE | re.DOTALL
)
NUMBER = re.compile(r"#\d+")


def comparable(report):
    report = NUMBER.sub("#", report.strip())
    if sys.version_info < (3, 11):
        # This Python keeps no columns: a position is its line, and the whole line is marked.
        report = re.sub(r"(\.py:\d+):\d+", r"\1", report)
        # Where a label is broken depends on where its mark ends.
        report = " ".join(word for word in report.split() if not set(word) <= set("|^-"))
    return report


def test_the_report_in_the_readme_is_what_is_printed(tmp_path):
    [(command, shown)] = SAMPLE.findall((ROOT / "README.md").read_text())
    program, run_word, script = command.split()
    done = run(f"{program} {run_word} -o {tmp_path}/run.sstrace {script}", ROOT)
    assert done.returncode == 66, done.stderr
    # What stands around the report is about the files of this run.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("streamsan> ")]
    assert comparable("\n".join(lines)) == comparable(shown)


def test_the_readme_names_every_rule(tmp_path):
    rows = [
        line.split("|")[1]
        for line in (ROOT / "README.md").read_text().splitlines()
        if line.startswith("| SS")
    ]
    named = re.findall(r"SS\d{3}", " ".join(rows))
    listed = re.findall(r"^SS\d{3}", run("streamsan explain rules", tmp_path).stdout, re.MULTILINE)
    assert sorted(named) == listed and len(listed) > 10


FILES = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_files_in_documents_are_those_of_the_tree():
    shown = [
        (document.name, file, text)
        for document in sorted((ROOT / "docs").rglob("*.md"))
        for file, text in FILES.findall(document.read_text())
    ]
    assert shown, "no document shows a file"
    for document, file, text in shown:
        assert text == (ROOT / file).read_text(), f"{document} shows another {file}"


LINKS = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_links_between_documents_lead_somewhere():
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{document.relative_to(ROOT)}: {link}"
        for document in documents
        for link in LINKS.findall(re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL))
        if "://" not in link and not (document.parent / link).exists()
    ]
    assert broken == []
