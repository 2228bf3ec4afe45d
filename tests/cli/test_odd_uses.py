"""The command as people call it by mistake, in pipes, on narrow terminals, and with odd names."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

STREAMSAN = [sys.executable, "-m", "streamsan"]
BAD = """
streams default, side
buffer x 4MiB
default: write x
side: read x
default: write x
"""
FOUND = 1
USAGE = 2
NOTHING = 4


@pytest.fixture
def bad(tmp_path):
    from streamsan import _core

    (tmp_path / "bad.sim").write_text(BAD)
    _core.write_program("bad.sim", BAD, str(tmp_path / "bad.sstrace"))
    return tmp_path


def said(*arguments, folder, **options):
    command = [*STREAMSAN, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, **options)


def on_terminal(command, folder, columns, stream):
    """What the command writes to a terminal that is so wide, and its exit status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: theirs}
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, **streams)
    os.close(theirs)
    written = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:
            break
        if not part:
            break
        written += part
    os.close(ours)
    return written.decode().replace("\r\n", "\n"), process.wait(timeout=100)


def visible(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(bad, columns):
    written, status = on_terminal([*STREAMSAN, "check", "bad.sstrace"], bad, columns, "stdout")
    assert status == FOUND and "\x1b[" in written
    text = visible(written)
    assert max(map(len, text.splitlines())) <= columns, text
    assert text.index("(1) ") < text.index("(2) ")
    page, status = on_terminal([*STREAMSAN, "explain", "SS101"], bad, columns, "stdout")
    prose = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in prose.splitlines() if not line.startswith("|")]
    assert status == 0 and max(map(len, lines)) <= columns, page


def test_a_file_has_eighty_columns(bad):
    done = said("check", "bad.sstrace", "-o", "report.txt", folder=bad)
    assert done.returncode == FOUND
    assert (bad / "report.txt").read_text() == done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80, done.stdout


def test_messages_of_a_run_fit_the_terminal_and_are_lines_elsewhere(tmp_path):
    (tmp_path / "a.py").write_text("print('out')")
    command = [*STREAMSAN, "run", "--device", "virtual", "a.py"]
    written, status = on_terminal(command, tmp_path, 50, "stderr")
    assert status == NOTHING
    mine = [line for line in visible(written).splitlines() if line.startswith("streamsan> ")]
    assert len(mine) > 1 and all(len(line) <= 50 or " " not in line[13:].strip() for line in mine), written
    done = said("run", "--device", "virtual", "a.py", folder=tmp_path)
    assert done.stdout == "out\n"
    assert re.search(r"^streamsan> recording to \S+ on the virtual device$", done.stderr, re.MULTILINE)


def test_a_reader_that_goes_away(bad):
    command = f"{sys.executable} -m streamsan check bad.sstrace | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=bad, capture_output=True, text=True, timeout=100)
    assert done.stdout.startswith("error[SS1") and done.stderr == ""


def test_names_that_are_no_text(bad):
    name = os.fsencode(bad) + b"/a\xff b\nc.sstrace"
    os.rename(bad / "bad.sstrace", name)
    command = [*map(os.fsencode, STREAMSAN), b"check", name, b"--output-format"]
    for form, read in [("json", json.loads), ("sarif", json.loads), ("concise", str)]:
        done = subprocess.run([*command, form.encode()], cwd=bad, capture_output=True, timeout=100)
        assert (done.returncode, done.stderr) == (FOUND, b""), form
        assert read(done.stdout.decode())


def test_mistakes_say_what_to_do(bad):
    (bad / "folder").mkdir()
    (bad / "empty.sstrace").touch()
    (bad / "cut.sstrace").write_bytes((bad / "bad.sstrace").read_bytes()[:2000])
    (bad / "other.json").write_text('{"traceEvents": []}')
    (bad / "other.txt").write_text("a text\n" * 1000)
    cases = [
        (["check", "none.sstrace"], "cannot read none.sstrace: no such file"),
        (["check", "folder"], "cannot read folder: it is a directory"),
        (["check", "empty.sstrace"], "the file is empty"),
        (["check", "cut.sstrace"], "the file is cut off at byte 2000"),
        (["check", "other.json"], "other.json is JSON, and no trace of streamsan"),
        (["check", "other.txt"], "it is not a streamsan trace"),
        (["check", "bad.sstrace", "bad.sstrace"], "bad.sstrace is named twice"),
        (["check", "bad.sstrace", "--select", "SS999"], "no such rule"),
        (["check", "bad.sstrace", "--exit-zero", "--error-on-warning"], "cannot be used with"),
        (["graph", "bad.sstrace", "-o", "x.foo"], "cannot tell the format of x.foo from its name"),
        (["graph", "bad.sstrace", "--finding", "F9"], "there is no finding F9"),
        (["log", "bad.sstrace", "--tensor", "zz"], "no memory is named 'zz'"),
        (["explain", "SS11"], "there is no rule SS11"),
        (["run", "folder"], "it is a directory without a __main__.py"),
        (["run", "none.py"], "there is no such script"),
        (["run", "--", "no-such-command"], "there is no such command"),
        (["run", "-x", "a.py"], "unexpected argument '-x' found"),
        (["chek"], "did you mean `streamsan check`?"),
    ]
    for arguments, expected in cases:
        done = said(*arguments, folder=bad)
        assert (done.returncode, done.stdout) == (USAGE, ""), arguments
        assert done.stderr.startswith("error: ") and expected in done.stderr, done.stderr
        assert "Traceback" not in done.stderr and "'-- -" not in done.stderr, done.stderr


def test_ways_to_name_a_program(tmp_path):
    code = "import sys; print(sys.argv[1:], sys.stdin.read())"
    (tmp_path / "two words\n.py").write_text(code)
    (tmp_path / "module.py").write_text(code)
    run = ["run", "--device", "virtual"]
    ways = [["two words\n.py"], ["-m", "module"], ["-c", code], ["--", sys.executable, "-c", code]]
    for way in ways:
        done = said(*run, *way, "--force", "-o", folder=tmp_path, input="typed")
        assert (done.returncode, done.stdout) == (NOTHING, "['--force', '-o'] typed\n"), done.stderr
        assert "no CUDA operation was recorded" in done.stderr
    names = sorted(path.name for path in tmp_path.glob("*.sstrace"))
    assert all(re.fullmatch(r"streamsan-[\w.-]+-\d+\.sstrace", name) for name in names), names


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise ValueError('x')", 1),
        ("import sys; sys.exit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", 128 + signal.SIGKILL),
        ("import os; os.abort()", 128 + signal.SIGABRT),
        ("def f(:", 1),
    ],
)
def test_the_status_of_a_program_that_fails_is_kept(tmp_path, code, status):
    done = said("run", "--device", "virtual", "-c", code, folder=tmp_path)
    assert done.returncode == status, done.stderr
    assert "no CUDA operation was recorded before" in done.stderr


def test_no_colours_where_nobody_wants_them(bad):
    plain = {**os.environ, "NO_COLOR": "1"}
    assert "\x1b" not in said("check", "bad.sstrace", folder=bad, env=plain).stdout
    assert "\x1b" not in said("check", "bad.sstrace", folder=bad).stdout
    assert "\x1b" in said("check", "--color", "always", "bad.sstrace", folder=bad).stdout


def test_a_script_that_may_not_be_read(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    script = Path(tmp_path, "secret.py")
    script.write_text("print(1)")
    script.chmod(0)
    done = said("run", "--device", "virtual", "secret.py", folder=tmp_path)
    assert done.returncode != 0 and "secret.py" in done.stderr
