"""Stream objects, their names, `record_stream`, and launches that no operator accounts for."""

import pytest

SOURCE = """\
import torch


class Loader:
    def __init__(self):
        self.side = torch.cuda.Stream()  # (attribute)
        self.pool = [torch.cuda.Stream() for _ in range(2)]  # (attribute list)


def made():
    return torch.cuda.Stream()  # (returned)


loader = Loader()
streams = [torch.cuda.Stream() for _ in range(2)]  # (comprehension)
written = [torch.cuda.Stream(), torch.cuda.Stream()]  # (written list)
table = {"up": torch.cuda.Stream(), "down": torch.cuda.Stream()}  # (dictionary)
built = {name: torch.cuda.Stream() for name in ("left", "right")}  # (built dictionary)
one, two = (torch.cuda.Stream() for _ in range(2))  # (unpacked)
generic = torch.Stream(device="cuda")  # (generic)
result = made()
current = torch.cuda.current_stream()  # (current)
same = torch.cuda.Stream(  # (same)
    stream_id=generic.stream_id, device_index=generic.device_index, device_type=generic.device_type
)
external = torch.cuda.ExternalStream(generic.native_handle)
x = torch.zeros(16, device="cuda")
x.record_stream(one)  # (record_stream)
x[4:].record_stream(generic)  # (record_stream view)
try:
    torch.zeros(4).record_stream(one)  # (record_stream cpu)
except NotImplementedError:
    pass
try:
    torch.zeros(4, pin_memory=True).record_stream(one)  # (record_stream pinned)
except NotImplementedError:
    pass
for _ in range(40):
    torch.cuda.Stream()  # (many)
torch.cuda.synchronize()
with torch._C._DisableTorchDispatch():
    torch.neg_(x)  # (launch)
"""


@pytest.fixture(scope="module")
def recording(program):
    return program.run(SOURCE)


@pytest.fixture(scope="module")
def names(recording):
    found = {}
    for event in recording.events:
        if event["kind"] == "name" and "stream" in event:
            found.setdefault(event["stream"], event["name"])
    return found


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("attribute", ["self.side"]),
        ("attribute list", ["self.pool[0]", "self.pool[1]"]),
        ("comprehension", ["streams[0]", "streams[1]"]),
        ("written list", ["written[0]", "written[1]"]),
        ("dictionary", ['table["up"]', 'table["down"]']),
        ("built dictionary", ['built["left"]', 'built["right"]']),
        ("unpacked", ["one", "two"]),
        ("generic", ["generic"]),
        ("returned", ["result"]),
    ],
)
def test_names(recording, names, label, expected):
    made = [event["stream"] for event in recording.at(label, "stream_object")]
    found = [names.get(stream) for stream in made]
    if label == "attribute list":
        # Whoever sees it first names it: the method as `self`, the module as `loader`.
        found = [name.replace("loader.", "self.") for name in found]
    assert found == expected


def test_objects_are_counted_and_share_streams(recording):
    objects = [event["object"] for event in recording.events if event["kind"] == "stream_object"]
    assert objects == list(range(1, len(objects) + 1))
    assert recording.at("current", "stream_object") == recording.at("same", "stream_object") == []
    many = [event["stream"] for event in recording.at("many", "stream_object")]
    assert (len(many), len(set(many))) == (40, 32)


def test_record_stream(recording, names):
    for label, name in [("record_stream", "one"), ("record_stream view", "generic")]:
        [event] = recording.at(label, "record_stream")
        assert (names[event["stream"]], recording.names[event["block"]]) == (name, "x")


@pytest.mark.parametrize("label", ["record_stream cpu", "record_stream pinned"])
def test_record_stream_of_memory_of_the_host(recording, label):
    [event] = recording.at(label, "record_stream")
    assert event["block"] == 0


def test_a_launch_without_an_operator_has_its_line(recording):
    [gap] = recording.at("launch", "gap")
    assert gap["reason"] == "OpaqueKernel"


COMPREHENSION = """\
import torch


class Turns:
    def __init__(self):
        self.upload, self.left = torch.cuda.Stream(), 2

    def __iter__(self):
        return self

    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left


x = torch.zeros(16, device="cuda")
turns = Turns()
seen = [x.add_(turn) for turn in turns]
"""


def test_expressions_for_streams_can_be_written(program):
    expressions = {
        expression
        for event in program.run(COMPREHENSION).events
        for frame in event["stack"]
        for expression in frame["streams"]
    }
    assert "turns.upload" in expressions
    for expression in expressions:
        compile(expression, "expression", "eval")
