"""What a program says of itself, in a process that is recorded: names, accesses of kernels, ignores."""

import pytest

PREPARE = """
import torch, streamsan
side = torch.cuda.Stream()
x = torch.ones(1024, device="cuda")
y = torch.empty(1024, device="cuda")

import ctypes
runtime = ctypes.CDLL(None)
class Dimensions(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]
grid = block = Dimensions(1, 1, 1)
symbol = ctypes.c_void_p(1)
"""
# A launch that no operator accounts for, as an extension makes it.
LAUNCH = "runtime.cudaLaunchKernel(symbol, grid, block, 0, 0, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))"


def test_names_are_the_users(program):
    recording = program.run(
        PREPARE
        + """
first = streamsan.name(torch.cuda.Stream(), "upload")
assert isinstance(first, torch.cuda.Stream)
assert streamsan.name(x[10:], "weights").data_ptr() == x[10:].data_ptr()
streamsan.name(torch.Stream(device="cuda"), "generic")
try:
    streamsan.name(3, "three")
except TypeError as error:
    print(error)
"""
    )
    names = [event["name"] for event in recording.events if event["kind"] == "name" and event["by_user"]]
    assert names == ["upload", "weights", "generic"]
    assert recording.stdout == "only streams and tensors have names, and this is a int\n"


def test_a_launch_without_annotation_is_a_gap(program):
    recording = program.run(PREPARE + f"{LAUNCH}  # (launch)\n")
    assert [event["kind"] for event in recording.at("launch")] == ["gap"]


def test_an_annotated_launch_is_an_operation_with_these_accesses(program):
    recording = program.run(
        PREPARE
        + """
with streamsan.annotate(reads=[x], writes=[y, x]):
    LAUNCH()  # (first)
    with torch.cuda.stream(side), streamsan.annotate(writes=[y[::2]]):
        LAUNCH()  # (second)
    LAUNCH()  # (third)
    torch.neg(x)  # (operator)
LAUNCH()  # (after)
""".replace("LAUNCH()", LAUNCH)
    )
    first, second, third = (recording.at(label, "op")[0] for label in ("first", "second", "third"))
    assert recording.accesses(first) == ["write y", "update x"] == recording.accesses(third)
    assert recording.accesses(second) == ["write y"] and second["accesses"][0]["shape"] != 0
    assert first["stream"] == third["stream"] != second["stream"]
    assert recording.kinds("after") == ["gap"]
    operators = [event["label"] for event in recording.at("operator", "op")]
    assert operators == ["aten::neg"]
    assert [event["label"] for event in recording.events if event["kind"] == "op"].count(
        "annotated kernel"
    ) == 0


def test_without_a_launch_one_operation_stands_for_what_was_done(program):
    recording = program.run(
        PREPARE
        + """
@streamsan.annotate(reads=[x], label="external")
def step():
    pass
with torch.cuda.stream(side):
    step()  # (step)
try:
    with streamsan.annotate(reads=[x]):
        raise KeyError
except KeyError:
    pass
"""
    )
    external = [event for event in recording.events if event.get("label") == "external"]
    [operation] = external
    assert recording.accesses(operation) == ["read x"]
    assert operation in recording.at("step")
    assert not [event for event in recording.events if event.get("label") == "annotated kernel"]


RACE = """
x.fill_(1)  # (1)
with torch.cuda.stream(side):
    z = x + 1
"""


def run_checked(program, source, status):
    return program.run(source, check=True, status=status)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("x.fill_(1)\nwith torch.cuda.stream(side):\n    z = x + 1\n", 66),
        (
            "x.fill_(1)\nwith torch.cuda.stream(side), streamsan.ignore('SS101', reason='it waits'):\n"
            "    z = x + 1\n",
            0,
        ),
        (
            "with streamsan.ignore('SS101', reason='it waits'):\n    x.fill_(1)\n"
            "with torch.cuda.stream(side):\n    z = x + 1\n",
            0,
        ),
        (
            "x.fill_(1)\nwith torch.cuda.stream(side):\n    z = x + 1  # streamsan: ignore[SS101] it waits\n",
            0,
        ),
        (
            "with streamsan.ignore('SS102', reason='it waits'):\n    x.fill_(1)\n"
            "with torch.cuda.stream(side):\n    z = x + 1\n",
            66,
        ),
    ],
)
def test_ignores(program, body, status):
    prepare = PREPARE + "side.wait_stream(torch.cuda.current_stream())\n"
    run_checked(program, prepare + body, status)


def test_an_ignore_around_backward_covers_what_the_engine_does(program):
    source = (
        PREPARE
        + """
w = torch.ones(1024, device="cuda", requires_grad=True)
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    loss = (w * 2).sum()
torch.cuda.current_stream().wait_stream(side)
with streamsan.ignore("SS101", reason="the engine"):  # (ignore)
    loss.backward()
(w.detach() * 2).sum()
"""
    )
    recording = program.run(source)
    begins = [event for event in recording.events if event["kind"] == "range_begin"]
    threads = {event["thread"] for event in begins}
    assert len(begins) == len(threads) == 2
    assert all(recording.user_line(event) in recording.lines("ignore") for event in begins)


TASKS = """
import asyncio
import contextvars

async def turns():
    for _ in range(3):
        await asyncio.sleep(0)

async def inside(reason):
    with streamsan.ignore("SS101", reason=reason):
        await turns()
        x.neg()  # (inside)
        await turns()
        with streamsan.ignore("SS102", reason="again"), streamsan.annotate(writes=[y]):
            await turns()
            LAUNCH()  # (annotated)
        x.neg()  # (still inside)
    await turns()
    x.neg()  # (after)

async def outside():
    for _ in range(14):
        await asyncio.sleep(0)
        x.neg()  # (other)
        LAUNCH()  # (unknown)

async def made_inside():
    with streamsan.ignore("SS101", reason="made inside"):
        task = asyncio.create_task(child())
    await turns()
    x.neg()  # (maker)
    await task

async def child():
    await turns()
    x.neg()  # (child)

async def main():
    await asyncio.gather(inside("one"), outside(), inside("two"))
    await made_inside()

with streamsan.ignore("SS103", reason="around"):
    x.neg()  # (around)
    asyncio.run(main())
    x.neg()  # (back)
x.neg()  # (at the end)

loop = asyncio.new_event_loop()
older = contextvars.copy_context()

def called():
    x.neg()  # (older context)
    loop.stop()

with streamsan.ignore("SS102", reason="newer"):
    loop.call_soon(called, context=older)
    loop.run_forever()
loop.close()
""".replace("LAUNCH()", LAUNCH)


def test_tasks_that_share_a_thread_have_ignores_and_annotations_of_their_own(program):
    recording = program.run(PREPARE + TASKS)
    labels = ("inside", "annotated", "still inside", "after", "other", "unknown", "maker", "child")
    labels += ("around", "back", "at the end", "older context")
    label_of = {line: label for label in labels for line in recording.lines(label)}
    open_ranges, found = [], {}
    for event in recording.events:
        if event["kind"] == "range_begin":
            open_ranges.append(event["label"])
        elif event["kind"] == "range_end":
            open_ranges.pop()
        label = label_of.get(recording.user_line(event))
        if label is not None and event["kind"] in ("op", "gap"):
            found.setdefault(label, set()).add((event["kind"], *sorted(open_ranges)))
    around = "SS103 around"

    def each(*more):
        return {("op", *sorted((around, f"SS101 {reason}", *more))) for reason in ("one", "two")}

    assert found == {
        "inside": each(),
        "annotated": each("SS102 again"),
        "still inside": each(),
        "after": {("op", around)},
        "other": {("op", around)},
        "unknown": {("gap", around)},
        "maker": {("op", around)},
        "child": {("op", *sorted((around, "SS101 made inside")))},
        "around": {("op", around)},
        "back": {("op", around)},
        "at the end": {("op",)},
        "older context": {("op", "SS102 newer")},
    }
