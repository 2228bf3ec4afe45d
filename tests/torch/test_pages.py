"""The PyTorch examples of the rule pages: each block is a script, its comments say what must be found."""

import re
from pathlib import Path

import pytest
from test_scripts import expectations, findings, user_line

PAGES = Path(__file__).resolve().parents[2] / "crates" / "streamsan-check" / "rule_docs"
BLOCK = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    found = []
    for page in sorted(PAGES.glob("*.md")):
        for number, block in enumerate(BLOCK.findall(page.read_text()), 1):
            found.append(pytest.param(page.stem, block, id=f"{page.stem}-{number}"))
    assert len(found) > 20
    return found


def places(finding, file):
    """The lines on which a page may announce a finding: of a block that was only freed, where that was."""
    parts = ["free", "second"] if finding["rule"] == "SS203" else ["second"]
    return {user_line(finding.get(part), file) for part in parts}


@pytest.mark.parametrize(("page", "block"), blocks())
def test_example(page, block, tmp_path):
    file = tmp_path / "example.py"
    file.write_text(block)
    command = "advise" if page.startswith("SS7") else "check"
    found = findings(file, tmp_path, command=command)["findings"]
    open_ones = list(found)
    for rule, level, earlier, later in expectations(block):
        for finding in open_ones:
            first = user_line(finding.get("first"), file)
            if (finding["rule"], finding["level"]) == (rule, level) and later in places(finding, file):
                assert earlier is None or first is None or first == earlier, finding
                open_ones.remove(finding)
                break
        else:
            pytest.fail(f"not found: {rule} on line {later}, found: {found}")
    assert open_ones == []
