"""The programs on which PyTorch's own sanitizer was measured: each with what is true of it.

CSAN of torch 2.11 finds four of the eleven hazards, misses seven, and reports two programs that are right. Its answer
stands beside each program.
"""

import pytest
from test_scripts import expectations, findings, user_line

START = """\
import torch
from torch.cuda import stream

side = torch.cuda.Stream()
third = torch.cuda.Stream()
main = torch.cuda.current_stream()
n = 1 << 20
"""

# Name: (what CSAN says, program).
PROGRAMS = {
    "write on a side stream without a wait": (
        "found",
        """
x = torch.zeros(n, device="cuda")  # (1)
with stream(side):
    x.add_(1)  # error: [SS101] after (1)
""",
    ),
    "one pointer, overlapping bytes": (
        "found",
        """
x = torch.zeros(n, device="cuda")
y = x.view(-1)[: n // 2]
side.wait_stream(main)
with stream(side):
    y.fill_(1)  # (1)
x.sum()  # error: [SS101] after (1)
""",
    ),
    "allocated on one stream, first written on another, an earlier user pending": (
        "found, by counting `empty` as a write",
        """
x = torch.ones(n, device="cuda")
x.mul_(2)  # (1)
del x
y = torch.empty(n, device="cuda")
with stream(side):
    y.fill_(1)  # error: [SS201] after (1)
""",
    ),
    "gradient used on a third stream": (
        "found",
        """
weight = torch.ones(n, device="cuda", requires_grad=True)
side.wait_stream(main)
with stream(side):
    loss = (weight * 2).sum()
loss.backward()  # (1)
with stream(third):
    weight.grad.add(1)  # error: [SS101] after (1)
""",
    ),
    "forward on a side stream, backward and gradient on the main one": (
        "clean",
        """
weight = torch.ones(n, device="cuda", requires_grad=True)
side.wait_stream(main)
with stream(side):
    loss = (weight * 2).sum()
main.wait_stream(side)
loss.backward()
weight.grad.add(1)
""",
    ),
    "disjoint slices and disjoint strided columns": (
        "clean",
        """
x = torch.zeros(1024, 1024, device="cuda")
side.wait_stream(main)
third.wait_stream(main)
x[:512].add_(1)
with stream(side):
    x[512:, ::2].add_(1)
with stream(third):
    x[512:, 1::2].add_(1)
""",
    ),
    "freed while a side stream reads, handed out on the main one": (
        "missed",
        """
x = torch.ones(n, device="cuda")
side.wait_stream(main)
with stream(side):
    x.sum()  # (1)
del x
y = torch.zeros(n, device="cuda")  # error: [SS202] after (1)
""",
    ),
    "of a side stream, read on the main one, handed out on the side stream": (
        "missed",
        """
with stream(side):
    x = torch.ones(n, device="cuda")
main.wait_stream(side)
x.sum()  # (1)
del x
with stream(side):
    y = torch.zeros(n, device="cuda")  # error: [SS202] after (1)
""",
    ),
    "storage resized to zero while a download reads it": (
        "missed",
        """
x = torch.ones(n, device="cuda")
host = torch.empty(n, pin_memory=True)
side.wait_stream(main)
with stream(side):
    host.copy_(x, non_blocking=True)  # (1)
x.untyped_storage().resize_(0)
y = torch.zeros(n, device="cuda")  # error: [SS202] after (1)
side.synchronize()
""",
    ),
    "overlapping views with different pointers": (
        "missed",
        """
x = torch.zeros(n, device="cuda")
side.wait_stream(main)
with stream(side):
    x[: n // 2 + 8].fill_(1)  # (1)
x[n // 2 :].sum()  # error: [SS101] after (1)
""",
    ),
    "zeros_like on a side stream, read on the main one": (
        "missed",
        """
x = torch.zeros(n, device="cuda")
side.wait_stream(main)
with stream(side):
    y = torch.zeros_like(x)  # (1)
y.sum()  # error: [SS101] after (1)
""",
    ),
    "page-locked result read before the download is done": (
        "missed",
        """
x = torch.ones(n, device="cuda")
host = x.to("cpu", non_blocking=True)  # (1)
host[0].item()  # error: [SS301] after (1)
""",
    ),
    "page-locked source overwritten during the upload": (
        "missed",
        """
host = torch.ones(n, pin_memory=True)
x = torch.empty(n, device="cuda")
x.copy_(host, non_blocking=True)  # (1)
host.fill_(2)  # error: [SS302] after (1)
""",
    ),
    "written on the main stream after a blocking download on a side stream": (
        "reported, wrongly",
        """
x = torch.ones(n, device="cuda")
side.wait_stream(main)
with stream(side):
    x.cpu()
x.fill_(2)
""",
    ),
    "written on the main stream after item() on a side stream": (
        "reported, wrongly",
        """
x = torch.ones(1, device="cuda")
side.wait_stream(main)
with stream(side):
    x.item()
x.fill_(2)
""",
    ),
}


def test_the_table_is_whole():
    answers = [answer.split(",")[0] for answer, _ in PROGRAMS.values()]
    assert [answers.count(kind) for kind in ("found", "clean", "missed", "reported")] == [4, 2, 7, 2]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(START + PROGRAMS[name][1])
    report = findings(file, tmp_path)
    found = [
        (
            finding["rule"],
            finding["level"],
            user_line(finding["first"], file),
            user_line(finding["second"], file),
        )
        for finding in report["findings"]
    ]
    assert sorted(found) == expectations(file.read_text())
    assert report["gaps"] == []
