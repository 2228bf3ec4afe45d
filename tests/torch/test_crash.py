"""Programs that end badly: what was recorded before is read back, and nobody takes the rest for clean.

A few kills at random points belong to the ordinary tests. Fifty:
`STREAMSAN_KILLS=50 python -m pytest -q -s tests/torch/test_crash.py -k random_point`
"""

import contextlib
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections import Counter

import pytest

# Two threads train, and count in shared memory which operators of their own they have finished.
TRAINING = """
import mmap, os, struct, sys, threading
page = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 4096)
struct.pack_into("<q", page, 0, os.getpid())
import torch

def train(slot, own):
    torch.manual_seed(slot)
    stream = torch.cuda.Stream()
    net = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    mine = torch.ones(8, device="cuda")
    torch.cuda.synchronize()
    count = 0
    while True:
        for _ in range(10):
            own(mine)
            count += 1
            struct.pack_into("<q", page, slot * 8, count)
        event = torch.cuda.Event()
        event.record()
        with torch.cuda.stream(stream):
            event.wait()
            data = torch.randn(16, 32, device="cuda")
        torch.cuda.current_stream().wait_stream(stream)
        data.record_stream(torch.cuda.current_stream())
        optimizer.zero_grad()
        net(data).square().mean().backward()
        optimizer.step()

threading.Thread(target=train, args=(2, lambda tensor: tensor.neg_()), daemon=True).start()
train(1, lambda tensor: tensor.abs_())
"""

# Fifty operators, and then an end.
ENDS = """
import ctypes, os, signal, sys, torch
x = torch.ones(8, device="cuda")
for _ in range(50):
    x.neg_()
print("so far", flush=True)
END
"""

KILLED = "killed or left without cleaning up"


class Page:
    """The memory in which a program counts."""

    def __init__(self, folder):
        self.path = folder / "page"
        self.path.write_bytes(bytes(4096))
        with open(self.path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 4096)

    def __getitem__(self, slot):
        return struct.unpack_from("<q", self._map, slot * 8)[0]

    def wait(self, slot, seconds=300):
        end = time.monotonic() + seconds
        while self[slot] == 0:
            assert time.monotonic() < end, "the program does not get that far"
            time.sleep(0.002)


def command(trace, script, *arguments, options=()):
    tool = [sys.executable, "-m", "streamsan", "run", "--device", "virtual", *options, "-o", str(trace)]
    return [*tool, str(script), *map(str, arguments)]


def run(folder, source, *options, trace="run.sstrace", **more):
    script = folder / "program.py"
    script.write_text(source)
    line = command(folder / trace, script, options=options)
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=300, **more)


def operators(trace):
    """How often each operator is in a trace."""
    from streamsan import _core

    return Counter(event["label"] for event in _core.read_events(str(trace)) if event["kind"] == "op")


def check(trace):
    line = [sys.executable, "-m", "streamsan", "check", str(trace)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert "panicked" not in done.stderr, done.stderr
    return done


def kill_at_random(folder, seed):
    """Kills a training run; returns how many of its operators were finished, and how many are in the trace."""
    chance = random.Random(seed)
    page = Page(folder)
    script, trace = folder / "train.py", folder / "run.sstrace"
    script.write_text(TRAINING)
    started = subprocess.Popen(
        command(trace, script, page.path),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    page.wait(0)
    if seed % 5:
        page.wait(1)
        time.sleep(chance.uniform(0, 1.5))
    else:
        # While torch is imported and the device is made ready.
        time.sleep(chance.uniform(0, 2))
    os.kill(page[0], signal.SIGKILL)
    stderr = started.communicate(timeout=300)[1]
    assert started.returncode == 128 + signal.SIGKILL, stderr
    assert "ended by SIGKILL" in stderr and "panicked" not in stderr, stderr
    finished = page[1] + page[2]
    if not trace.exists():
        assert finished == 0
        return 0, 0
    done = check(trace)
    found = operators(trace)
    if finished == 0:
        assert done.returncode in (0, 2, 4), done.stdout + done.stderr
        return 0, found.total()
    assert done.returncode == 0, done.stdout + done.stderr
    assert KILLED in done.stdout and KILLED in stderr, done.stdout
    for slot, name in ((1, "aten::abs_"), (2, "aten::neg_")):
        assert page[slot] <= found[name] <= page[slot] + 1, (name, page[slot], found[name])
    return finished, found.total()


def test_a_kill_at_a_random_point_loses_no_finished_operator(tmp_path):
    kills, first = int(os.environ.get("STREAMSAN_KILLS", "3")), random.randrange(1000) * 5
    print(f"seeds from {first}")
    results = []
    for turn in range(kills):
        folder = tmp_path / str(turn)
        folder.mkdir()
        results.append(kill_at_random(folder, first + turn))
    finished, found = (sum(column) for column in zip(*results, strict=True))
    print(
        f"{kills} kills: {finished} operators of the program were finished, {found} operators were read back"
    )
    assert finished > 0 or kills < 2


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("os.abort()", 128 + signal.SIGABRT),
        ("ctypes.string_at(0)", 128 + signal.SIGSEGV),
        ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
        ("os._exit(3)", 3),
        ("os._exit(0)", 0),
        ("import faulthandler; faulthandler.enable(); ctypes.string_at(0)", 128 + signal.SIGSEGV),
    ],
)
@pytest.mark.parametrize("options", [(), ("--protect-host-memory",)], ids=["plain", "protected"])
def test_an_end_without_goodbye_keeps_the_record(tmp_path, end, status, options):
    done = run(tmp_path, ENDS.replace("END", end), *options)
    assert (done.returncode, done.stdout) == (status, "so far\n"), done.stderr
    assert KILLED in done.stderr and "panicked" not in done.stderr, done.stderr
    assert operators(tmp_path / "run.sstrace")["aten::neg_"] == 50


def test_a_fork_without_exec(tmp_path):
    fork = """
import os, signal, sys, torch
x = torch.ones(8, device="cuda")
x.neg_()
for end in ("sys.exit(0)", "os._exit(0)", "os.abort()", "os.kill(os.getpid(), signal.SIGKILL)"):
    child = os.fork()
    if child == 0:
        torch.ones(4).neg_()
        eval(end)
    os.waitpid(child, 0)
x.neg_()
print(x.sum().item())
"""
    done = run(tmp_path, fork)
    assert (done.returncode, done.stdout) == (0, "8.0\n"), done.stderr
    assert "forked" in done.stderr and KILLED not in done.stderr, done.stderr
    assert operators(tmp_path / "run.sstrace")["aten::neg_"] == 2
    assert [path.name for path in tmp_path.glob("*.sstrace")] == ["run.sstrace"]


# Much more than the disk holds; the program's own result is right.
LONG = """
import resource, sys, torch
LIMIT
x = torch.zeros(8, device="cuda")
for _ in range(20000):
    x.add_(1)
print(x[0].item())
"""


def is_incomplete(done, trace):
    """The program has finished, and nobody says that all is well."""
    assert done.stdout == "20000.0\n", done.stderr
    assert "could not be stored" in done.stderr and "events were lost" in done.stderr, done.stderr
    assert done.returncode == 4, done.stderr
    again = check(trace)
    assert again.returncode == 4 and "could not be stored" in again.stdout, again.stdout
    assert 0 < operators(trace)["aten::add_"] < 20000


def test_a_file_that_may_not_grow(tmp_path):
    done = run(
        tmp_path, LONG.replace("LIMIT", "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))")
    )
    is_incomplete(done, tmp_path / "run.sstrace")


def test_a_file_that_may_not_grow_and_an_error(tmp_path):
    limit = """
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
side, y = torch.cuda.Stream(), torch.zeros(8, device="cuda")
with torch.cuda.stream(side):
    y.add_(1)
"""
    done = run(tmp_path, LONG.replace("LIMIT", limit))
    assert done.returncode == 66 and "SS101" in done.stderr and "events were lost" in done.stderr, done.stderr


@contextlib.contextmanager
def mounted(folder, options):
    """A file system of its own, or a skipped test."""
    folder.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(line, capture_output=True).returncode != 0:
        pytest.skip("mounting a small file system takes root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(tmp_path):
    with mounted(tmp_path / "small", "size=1m") as disk:
        done = run(tmp_path, LONG.replace("LIMIT", ""), trace="small/run.sstrace")
        is_incomplete(done, disk / "run.sstrace")


def test_a_disk_that_was_full_before(tmp_path):
    with mounted(tmp_path / "small", "size=1m") as disk:
        with contextlib.suppress(OSError), open(disk / "other", "wb", buffering=0) as other:
            while True:
                other.write(bytes(4096))
        done = run(tmp_path, LONG.replace("LIMIT", ""), trace="small/run.sstrace")
        # Refused before the start, or run and not taken for clean.
        assert (done.returncode, done.stdout) in [(2, ""), (4, "20000.0\n")], done.stderr
        assert "small/run.sstrace" in done.stderr, done.stderr


def test_a_folder_that_cannot_be_written(tmp_path):
    if os.geteuid() == 0:
        with mounted(tmp_path / "still", "size=1m") as folder:
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
            done = run(tmp_path, "print('ran')", trace="still/run.sstrace")
    else:
        (tmp_path / "still").mkdir(mode=0o555)
        done = run(tmp_path, "print('ran')", trace="still/run.sstrace")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "cannot write" in done.stderr and "still/run.sstrace" in done.stderr, done.stderr


def test_two_runs_on_one_path(tmp_path):
    page = Page(tmp_path)
    script, trace = tmp_path / "train.py", tmp_path / "run.sstrace"
    script.write_text(TRAINING)
    first = subprocess.Popen(
        command(trace, script, page.path), cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    page.wait(1)
    second = run(tmp_path, "print('ran')", "--force")
    assert (second.returncode, second.stdout) == (2, "") and "another run" in second.stderr, second.stderr
    before = page[1]
    while page[1] < before + 20:
        time.sleep(0.01)
    os.kill(page[0], signal.SIGKILL)
    first.communicate(timeout=300)
    assert page[1] <= operators(trace)["aten::abs_"] <= page[1] + 1


def test_a_program_whose_streamsan_run_is_killed_ends_and_keeps_its_record(tmp_path):
    page = Page(tmp_path)
    script, trace = tmp_path / "train.py", tmp_path / "run.sstrace"
    script.write_text(TRAINING)
    started = subprocess.Popen(command(trace, script, page.path), cwd=tmp_path, stderr=subprocess.DEVNULL)
    page.wait(1)
    program = page[0]
    assert program != started.pid
    started.kill()
    started.wait()
    end = time.monotonic() + 120
    while is_running(program):
        assert time.monotonic() < end, "the program goes on without its parent"
        time.sleep(0.01)
    assert page[1] <= operators(trace)["aten::abs_"] <= page[1] + 1
    # The next run may have the path.
    again = run(tmp_path, "import torch; torch.ones(1, device='cuda')", "--force")
    assert again.returncode == 0, again.stderr


def is_running(process):
    """Whether a process is there and no zombie that nobody has waited for."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
