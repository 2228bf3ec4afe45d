"""The mode for a GPU: what it records is what the mode of the virtual device records.

There is no GPU here, so the operators are computed as on the virtual device (`observed.py`).
"""

from pathlib import Path

import pytest
import test_scripts

RUNNER = str(Path(__file__).with_name("observed.py"))

PROGRAM = """\
import torch

side = torch.cuda.Stream()
x = torch.ones(64, 64, device="cuda")
y = (x @ x).relu_()[:, ::2]
with torch.cuda.stream(side):
    z = torch.cat([y, y], 1)
    z.record_stream(side)
net = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.GELU(), torch.nn.LayerNorm(8)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(2):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
mask = z > 1
chosen = z[mask]
z[mask] = 0
total = x.sum().item()
pinned = torch.ones(64).pin_memory()
up = pinned.to("cuda", non_blocking=True)
down = up.to("cpu", non_blocking=True)
side.synchronize()
pinned.add_(1)
up.copy_(pinned)
x.cpu()
again = x.clone()
again.copy_(x)
again.zero_()
again.resize_(128, 64)
big = torch.empty(8, pin_memory=True)
with torch.inference_mode():
    torch.nn.functional.linear(x, x)
"""

COPIES = """\
import torch

x = torch.ones(4, 8, device="cuda")
t = torch.empty(8, 4, device="cuda").t()
pinned = torch.ones(4, 8).pin_memory()
wide = torch.ones(4, 8, dtype=torch.float64).pin_memory()
t.copy_(pinned)  # (up into another layout)
x.copy_(wide)  # (up, converted first)
x.copy_(wide, non_blocking=True)  # (up, converted last)
pinned.copy_(t)  # (down from another layout)
wide.copy_(x)  # (down, converted last)
wide.copy_(x, non_blocking=True)  # (down, converted first)
made = t.to("cpu", torch.float64, non_blocking=True)  # (made)
"""


def shown(event):
    """What of an event does not depend on the run."""
    accesses = [
        {name: access[name] for name in ("block", "mode", "offset", "length", "shape", "argument")}
        for access in event.get("accesses", [])
    ]
    rest = {
        name: event.get(name)
        for name in ("kind", "label", "op", "thread", "stream", "block", "size", "observer", "how", "name")
    }
    return rest | {"accesses": accesses}


def test_the_same_is_recorded(program, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    computed = program.run(PROGRAM, file=file)
    observed = program.run(PROGRAM, file=Path(RUNNER), arguments=[str(file)])

    def of_program(recording):
        for event in recording.events:
            frames = [frame for frame in event.get("stack", []) if frame["file"] == str(file)]
            if frames:
                yield frames[0]["line"], shown(event)

    ours, theirs = list(of_program(observed)), list(of_program(computed))
    assert len(theirs) > 200
    assert ours == theirs
    assert observed.gaps() == computed.gaps() == []


def test_copies_that_need_temporaries(program, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(COPIES)
    recording = program.run(COPIES, file=Path(RUNNER), arguments=[str(file)])
    recording.source = COPIES

    def rows(label):
        [line] = recording.lines(label)
        return [
            (
                event.get("op", "host"),
                [f"{access['mode']} {access['length']}" for access in event["accesses"]],
            )
            for event in recording.events
            if event["kind"] in ("op", "host_access")
            and any(frame["file"] == str(file) and frame["line"] == line for frame in event["stack"])
        ]

    host, up, down, kernel = "host", "CopyHostToDevice", "CopyDeviceToHost", "Kernel"
    assert rows("up into another layout") == [(up, ["read 128", "write 128"]), (kernel, ["write 128"])]
    assert rows("up, converted first") == [(host, ["read 256"]), (up, ["write 128"])]
    assert rows("up, converted last") == [(up, ["read 256", "write 256"]), (kernel, ["write 128"])]
    assert rows("down from another layout") == [(kernel, ["read 128"]), (down, ["read 128", "write 128"])]
    assert rows("down, converted last") == [(down, ["read 128"]), (host, ["write 256"])]
    assert rows("down, converted first") == [(kernel, ["read 128"]), (down, ["read 256", "write 256"])]
    # The result has the layout of its source.
    assert rows("made") == [(kernel, ["read 128"]), (down, ["read 256"]), (host, ["write 256"])]


@pytest.mark.parametrize("file", test_scripts.scripts("fail"))
def test_fail(file, tmp_path):
    test_scripts.assert_expected(file, test_scripts.findings(file, tmp_path, RUNNER))


# Its results go through kernels that change layouts on the way to the host, and those compute nothing here.
VALUES_OF_KERNELS = {"pipeline_random"}


@pytest.mark.parametrize(
    "file", [file for file in test_scripts.scripts("pass") if file.id not in VALUES_OF_KERNELS]
)
def test_pass(file, tmp_path):
    report = test_scripts.findings(file, tmp_path, RUNNER)
    assert report["findings"] == []
    assert report["gaps"] == []
