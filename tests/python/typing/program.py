"""A user's program that uses the whole of the Python surface. It is checked, not run."""

from __future__ import annotations

import pickle
from pathlib import Path

import torch
from typing_extensions import assert_type

import streamsan

side = streamsan.name(torch.cuda.current_stream(), "side")
assert_type(side, torch.cuda.Stream)
x = streamsan.name(torch.ones(4), "x")
assert_type(x, torch.Tensor)


@streamsan.ignore("SS101", "SS102", reason="the loader waits")
@streamsan.annotate(reads=[x], writes=[x], label="scale")
def step(batch: torch.Tensor) -> int:
    return len(batch)


assert_type(step(x), int)

with streamsan.annotate(reads=[x]):
    step(x)
with streamsan.sanitize(ignore=["SS4"]) as session:
    step(x)
assert_type(session, streamsan.Session)
assert_type(session.report, streamsan.Report)
with streamsan.record(Path("step.sstrace"), overwrite=True):
    step(x)

report = streamsan.check("run.sstrace", Path("other.sstrace"), select=["SS1"], ignore=("SS903",))
assert_type(report, streamsan.Report)
assert_type(report.ok, bool)
assert_type(report.findings, tuple[streamsan.Finding, ...])
assert_type(report.summary(), str)
assert_type(report.render("concise"), str)
assert_type(report.to_json(), str)
assert_type(len(report), int)
report.write("report.html")
pickle.dumps(report)

for finding in report:
    assert_type(finding.rule, str)
    assert_type(finding.count, int)
    assert_type(str(finding), str)
    if finding.level == "error" and finding.first is not None and finding.missing_edge is not None:
        assert_type(finding.first.stack[0].line, int)
        assert_type(finding.missing_edge.source, int)
        earlier, later = finding.missing_edge
        assert_type(later - earlier, int)
    if finding.memory is not None:
        assert_type(finding.memory.device, int | None)
    if finding.fix is not None:
        assert_type(finding.fix.insert, str | None)
for gap in report.gaps:
    assert_type(gap.count, int)

try:
    report.raise_if_errors()
except streamsan.HazardError as error:
    assert_type(error.report, streamsan.Report)
except (streamsan.TraceError, streamsan.CaptureError):
    pass
except streamsan.StreamsanError:
    raise SystemExit(streamsan.__version__) from None
