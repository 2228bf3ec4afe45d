"""`streamsan.sanitize` and `streamsan.record` in processes that are recorded."""

import streamsan

PREPARE = """
import threading, warnings
import torch, streamsan
side = torch.cuda.Stream()
x = torch.ones(1024, device="cuda")
side.wait_stream(torch.cuda.current_stream())

def race():
    x.fill_(1)
    with torch.cuda.stream(side):
        x + 1
    torch.cuda.synchronize()

def step():
    x.fill_(1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x + 1
    torch.cuda.synchronize()
"""


def run(program, source, *options):
    return program.run(PREPARE + source, *options).stdout.splitlines()


def test_a_clean_block_and_one_with_a_hazard(program):
    assert run(
        program,
        """
race()
with streamsan.sanitize() as session:
    step()
    try:
        session.report
    except RuntimeError as error:
        print(error)
print(session.report.ok, session.report.coverage.operations, len(session.report))
for _ in range(2):
    try:
        with streamsan.sanitize() as session:
            race()
    except streamsan.HazardError as error:
        print([finding.rule for finding in error.report], error.report is session.report)
        print("error[SS101]" in str(error), error.report.findings[0].fix.verified)
""",
    ) == [
        "the block still runs: its report is there when it has ended",
        "True 2 0",
        "['SS101'] True",
        "True True",
        "['SS101'] True",
        "True True",
    ]


def test_the_earlier_operation_may_lie_before_the_block(program):
    assert run(
        program,
        """
x.fill_(1)
try:
    with streamsan.sanitize(), torch.cuda.stream(side):
        x + 1
except streamsan.HazardError as error:
    print(len(error.report), error.report.coverage.operations)
""",
    ) == ["1 1"]


def test_nested_blocks_judge_each_its_part(program):
    assert run(
        program,
        """
try:
    with streamsan.sanitize() as outer:
        race()
        with streamsan.sanitize() as inner:
            step()
        print("inner is clean", inner.report.ok)
except streamsan.HazardError as error:
    print("outer", len(error.report))
try:
    with streamsan.sanitize() as outer:
        try:
            with streamsan.sanitize():
                race()
        except streamsan.HazardError:
            print("inner")
except streamsan.HazardError:
    print("and outer")
""",
    ) == ["inner is clean True", "outer 1", "inner", "and outer"]


def test_exceptions_of_the_body_win_and_other_threads_are_seen(program):
    assert run(
        program,
        """
try:
    with streamsan.sanitize() as session:
        race()
        raise KeyError("mine")
except KeyError as error:
    print(error, len(session.report))

def other():
    torch.cuda.synchronize()
    race()

try:
    with streamsan.sanitize():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
except streamsan.HazardError as error:
    print("of the thread", len(error.report))

@streamsan.sanitize(ignore=["SS101"])
def ignored():
    race()

ignored()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with streamsan.sanitize():
        pass
print(caught[0].message)
""",
    ) == [
        "'mine' 1",
        "of the thread 1",
        "no CUDA operation was recorded inside of this block, so nothing was checked",
    ]


def test_a_session_knows_the_ignores_of_the_program(program):
    assert run(
        program,
        """
with streamsan.sanitize() as session:
    with streamsan.ignore("SS101", reason="it waits"):
        race()
    x.fill_(2)
    with torch.cuda.stream(side):
        x + 1  # streamsan: ignore[SS101] it waits
print(session.report.ok, "2 findings ignored" in session.report.summary())
""",
    ) == ["True True"]


def test_a_recorded_part_is_checked_alone(program):
    folder = program.folder
    assert run(
        program,
        f"""
race()
with streamsan.record({str(folder / "clean.sstrace")!r}):
    step()
with streamsan.record({str(folder / "race.sstrace")!r}):
    race()
race()
try:
    with streamsan.record({str(folder / "race.sstrace")!r}):
        pass
except FileExistsError as error:
    print(error.filename.endswith("race.sstrace"))
""",
    ) == ["True"]
    clean, race = (streamsan.check(folder / f"{name}.sstrace") for name in ("clean", "race"))
    assert clean.ok and clean.coverage.operations == 2
    assert [(finding.rule, finding.count) for finding in race] == [("SS101", 1)]
    assert not race.gaps and not clean.gaps


def test_a_forked_child_is_told_why(program):
    assert run(
        program,
        """
import os, sys
with streamsan.sanitize():
    step()
if os.fork() == 0:
    try:
        with streamsan.sanitize():
            print("not reached")
    except streamsan.CaptureError as error:
        print("forked" in str(error), flush=True)
    os._exit(0)
os.wait()
""",
    ) == ["True"]


def test_a_clean_session_costs_no_second_reading(program):
    # The report is made when it is asked for; a thousand sessions stay quick, however long the trace is.
    [seconds] = run(
        program,
        """
import time
for _ in range(2000):
    step()
with streamsan.sanitize():
    step()
start = time.perf_counter()
for _ in range(200):
    with streamsan.sanitize():
        step()
steps = time.perf_counter()
for _ in range(200):
    step()
print((steps - start) / (time.perf_counter() - steps))
""",
    )
    assert float(seconds) < 20


def test_levels_of_the_project_count(program, tmp_path):
    source = """
import os
os.chdir({folder!r})
event = torch.cuda.Event()
try:
    with streamsan.sanitize():
        step()
        side.wait_event(event)
        {more}
    print("nothing raised")
except streamsan.HazardError as error:
    print([(finding.rule, finding.level) for finding in error.report.errors])
except ValueError as error:
    print(error)
"""
    settings = tmp_path / "pyproject.toml"
    for text, more, said in (
        ("[tool.streamsan]\n", "", "nothing raised"),
        ("[tool.streamsan]\nerror = ['SS4']\n", "", "[('SS401', 'error')]"),
        ("[tool.streamsan]\nwarn = ['SS101']\n", "race()", "nothing raised"),
        (
            "[tool.streamsan]\nerrors = ['SS4']\n",
            "",
            "pyproject.toml:2: unknown key `errors` in [tool.streamsan]",
        ),
    ):
        settings.write_text(text)
        assert run(program, source.format(folder=str(tmp_path), more=more))[0] == said
