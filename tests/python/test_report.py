"""`streamsan.check` and the values that it returns."""

import copy
import dataclasses
import errno
import json
import pickle
import subprocess
import sys

import pytest
from sample_traces import BAD, EMPTY, FIXED, write

import streamsan


@pytest.fixture
def bad(tmp_path):
    return write(tmp_path, "bad", BAD)


@pytest.fixture
def report(bad):
    return streamsan.check(bad)


def test_a_finding_has_both_operations_and_what_is_between_them(report):
    [finding] = report.findings
    assert (finding.id, finding.rule, finding.name) == ("F1", "SS101", "unordered-read-after-write")
    assert (finding.level, finding.hazard, finding.count) == ("error", "RAW", 1)
    first, second = finding.first, finding.second
    assert (first.stream, first.access, first.stack[0].line) == ("default", "write", 3)
    assert (second.stream, second.access, second.stack[0].line) == ("side", "read", 4)
    assert finding.missing_edge == (first.op, second.op)
    assert finding.missing_edge.source == first.op
    assert finding.ordered_up_to == streamsan.Reach("default", 0)
    assert (finding.memory.name, finding.memory.bytes, finding.memory.offset) == ("x", 4 << 20, 0)
    assert finding.fix.verified and finding.fix.line == 4
    assert str(finding).startswith("bad.sim:4: error[SS101] ")


def test_the_report_says_what_the_command_says(bad, report):
    def command(format):
        done = subprocess.run(
            [sys.executable, "-m", "streamsan", "check", "--output-format", format, str(bad)],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 1, done.stderr
        return done.stdout

    for format in ("full", "concise", "json"):
        assert report.render(format) == command(format), format
    assert str(report) == report.render() == command("full")
    assert report.to_json() == command("json")
    assert report.render().endswith(report.summary())


TWICE = """
streams default, side
buffer x 4MiB
default: write x
default: record e
side: wait e
side: wait e
side: read x
""".lstrip()


def test_advice_is_given_where_it_is_asked_for(tmp_path):
    trace = write(tmp_path, "twice", TWICE)
    assert streamsan.check(trace).findings == ()
    report = streamsan.check(trace, advice=True)
    [finding] = report.findings
    assert (finding.rule, finding.level, finding.second.stack[0].line) == ("SS703", "note", 6)
    assert finding.advice == streamsan.Advice(executions=1, operations=1, bytes=0)
    assert finding.fix.where == "remove" and finding.fix.verified
    assert report.ok and report.errors == ()
    assert json.loads(report.to_json())["measures"][0]["longest_chain"] == 2
    # A further format is made of the same question.
    assert "SS703" in report.render("sarif") and "SS703" in report.render("html")


def test_it_is_a_collection_of_its_findings(report):
    assert len(report) == 1 and list(report) == list(report.findings)
    assert report and not report.ok
    assert report.errors == report.findings


def test_a_clean_report(tmp_path):
    report = streamsan.check(write(tmp_path, "fixed", FIXED))
    assert report.ok and report and len(report) == 0
    report.raise_if_errors()
    assert report.summary().startswith("No hazards in what was seen")


def test_a_trace_without_operations_is_not_ok(tmp_path):
    report = streamsan.check(write(tmp_path, "empty", EMPTY))
    assert not report.ok and len(report) == 0
    with pytest.raises(streamsan.CaptureError, match=r"no CUDA operation was recorded in .*empty\.sstrace"):
        report.raise_if_errors()


def test_a_damaged_trace_is_not_ok(tmp_path):
    trace = write(tmp_path, "fixed", FIXED)
    # The last chunk is that of the events.
    content = bytearray(trace.read_bytes())
    end = len(content.rstrip(b"\0"))
    content[end - 32 : end] = b"\xff" * 32
    trace.write_bytes(content)
    report = streamsan.check(trace)
    assert not report.ok and report.errors == () and report.coverage.operations > 0
    assert [gap.reason for gap in report.gaps] == ["damaged"]
    with pytest.raises(streamsan.CaptureError, match=r"a part of .*fixed\.sstrace is lost"):
        report.raise_if_errors()


def test_raise_if_errors_raises_the_report(report):
    with pytest.raises(streamsan.HazardError) as raised:
        report.raise_if_errors()
    assert raised.value.report is report
    assert str(raised.value) == str(report)


def test_values_are_plain(report):
    again = pickle.loads(pickle.dumps(report))
    assert again == report == copy.deepcopy(report) and hash(again) == hash(report)
    assert again.render("concise") == report.render("concise")
    error = pickle.loads(pickle.dumps(streamsan.HazardError(report)))
    assert error.report == report and str(error) == str(report)
    for value in (report, report.findings[0], report.findings[0].first, report.coverage):
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.rule = "SS102"
    assert json.loads(report.to_json())["findings"][0]["fingerprint"] == report.findings[0].fingerprint


def test_two_checks_of_one_trace_are_equal(bad, report, tmp_path):
    assert streamsan.check(bad) == report
    assert streamsan.check(write(tmp_path, "fixed", FIXED)) != report


def test_several_traces_are_one_report(bad, tmp_path):
    report = streamsan.check(bad, write(tmp_path, "fixed", FIXED), bad)
    assert [finding.id for finding in report] == ["F1", "F2"]
    assert report.coverage.operations == 6


def test_rules_are_chosen(bad):
    assert len(streamsan.check(bad, select=["SS1"])) == 1
    assert len(streamsan.check(bad, select=["SS2"])) == 0
    ignored = streamsan.check(bad, ignore=["unordered-read-after-write"])
    assert (len(ignored), ignored.hidden) == (0, 1)
    with pytest.raises(ValueError, match=r"SS777.*no such rule"):
        streamsan.check(bad, ignore=["SS777"])


@pytest.mark.parametrize("suffix", ["html", "json", "jsonl", "sarif", "txt", "xml"])
def test_written_by_the_name_of_the_file(report, tmp_path, suffix):
    path = tmp_path / f"report.{suffix}"
    report.write(path)
    assert "SS101" in path.read_text()
    report.write(str(path))


def test_a_name_that_tells_no_format(report, tmp_path):
    with pytest.raises(ValueError, match=r"tells no format; end it in one of \.html"):
        report.write(tmp_path / "report.docx")
    with pytest.raises(ValueError, match="no format is called 'pdf'; there are full, concise, json"):
        report.render("pdf")
    with pytest.raises(FileNotFoundError) as raised:
        report.write(tmp_path / "nowhere" / "report.txt")
    assert raised.value.filename == str(tmp_path / "nowhere" / "report.txt")


def test_the_trace_may_go_but_not_change(bad, report):
    before = report.render("sarif")
    bad.write_bytes(bad.read_bytes() + b"more")
    with pytest.raises(streamsan.TraceError, match="changed since it was checked"):
        report.render("sarif")
    bad.unlink()
    assert before and report.render() and report.to_json() and report.findings
    with pytest.raises(FileNotFoundError):
        report.render("sarif")


def test_errors_of_files_are_the_builtin_ones(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        streamsan.check(tmp_path / "nothing.sstrace")
    assert raised.value.filename == str(tmp_path / "nothing.sstrace")
    assert raised.value.errno == errno.ENOENT
    with pytest.raises(IsADirectoryError):
        streamsan.check(tmp_path)
    (tmp_path / "text.sstrace").write_text("no trace")
    with pytest.raises(streamsan.TraceError, match=r"cannot read .*text\.sstrace: it is not a streamsan"):
        streamsan.check(tmp_path / "text.sstrace")
    with pytest.raises(ValueError, match="name at least one trace"):
        streamsan.check()


def test_a_notebook_shows_a_table_and_nothing_that_runs(report):
    page = report._repr_html_()
    assert "<table>" in page and "SS101" in page and "--X--&gt;" in page
    assert "<script" not in page and "http" not in page
