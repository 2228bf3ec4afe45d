"""Advice: scripts that say where it is due, and programs that are right and must be left alone.

`advice/` has scripts with comments like those of `fail/`: `# advice: [SS703]` on each line that advice is about. All other
lines, and the whole of a script without such a comment, must get none.
"""

import pytest
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
