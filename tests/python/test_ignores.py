"""Comments that say what is not to be reported, as `streamsan.check` reads them."""

import warnings

import pytest
from sample_traces import BAD, write

import streamsan


def check(folder, comment, **options):
    trace = write(folder, "bad", BAD)
    (folder / "bad.sim").write_text(f"{BAD.rstrip()}{comment}\n")
    return streamsan.check(trace, **options)


def test_a_comment_hides_and_the_summary_says_so(tmp_path):
    report = check(tmp_path, "  # streamsan: ignore[SS101] the loader waits")
    assert report.ok and len(report) == 0
    assert "1 finding of SS101 at bad.sim:4: the loader waits" in report.summary()
    assert report.ignored == (streamsan.Ignored("bad.sim:4", ("SS101",), "the loader waits", 1, 1),)


def test_a_comment_without_a_reason_is_a_warning_at_its_line(tmp_path):
    with pytest.warns(UserWarning, match="this ignore has no reason, so it ignores nothing") as caught:
        report = check(tmp_path, "  # streamsan: ignore[SS101]")
    assert not report.ok
    assert (caught[0].filename.endswith("bad.sim"), caught[0].lineno) == (True, 4)


def test_an_unused_comment_is_a_finding_that_can_be_ignored(tmp_path):
    report = check(tmp_path, "  # streamsan: ignore[SS102] nobody writes")
    assert [(finding.rule, finding.level) for finding in report] == [("SS101", "error"), ("SS903", "warning")]
    assert report.findings[1].second.stack[0].line == 4 and report.findings[1].first is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [finding.rule for finding in check(tmp_path, "", ignore=["SS903"])] == ["SS101"]


def test_a_slip_in_the_program_is_an_error_recorded_or_not():
    with pytest.raises(ValueError, match="'SS1O1' is no rule"):
        streamsan.ignore("SS1O1", reason="a slip")
    with pytest.raises(ValueError, match="say why SS101 can be ignored here: the reason is empty"):
        streamsan.ignore("SS101", reason="  ")
    with pytest.raises(ValueError, match="name the rules to ignore"):
        streamsan.ignore(reason="all is well")
    with pytest.raises(TypeError, match="reason"):
        streamsan.ignore("SS101")
