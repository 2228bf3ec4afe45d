"""The event feed: what one process of torch does, and what is recorded of it, row by row."""

import pytest

SOURCE = """\
import time

import torch

side = torch.cuda.Stream()
current = torch.cuda.current_stream()
x = torch.empty(1 << 20, device="cuda")  # (allocate)
side.wait_stream(current)  # (wait_stream)
x.record_stream(side)  # (record_stream)
del x  # (free)
y = torch.empty(1 << 20, device="cuda")  # (reuse)

event = torch.cuda.Event()
event.record()  # (record)
while not event.query():  # (query)
    pass

generic = torch.Event(device="cuda")
generic.record()  # (generic record)
while not generic.query():  # (generic query)
    pass

pinned = torch.ones(1024).pin_memory()  # (pin)
pinned_address = pinned.data_ptr()
uploaded = pinned.to("cuda", non_blocking=True)  # (upload)
time.sleep(0.1)
del pinned  # (drop pinned)
time.sleep(0.1)
again = torch.empty(1024, pin_memory=True)  # (pin again)
assert again.data_ptr() == pinned_address

weight = torch.ones(1 << 20, device="cuda", requires_grad=True)
side.wait_stream(current)
with torch.cuda.stream(side):
    loss = (weight * 2).sum()  # (forward)
loss.backward()  # (backward)

torch.cuda._sleep(1000)  # (sleep)
with torch._C._DisableTorchDispatch():
    torch.neg(y)  # (opaque)

never = torch.cuda.Event()
never.wait(side)  # (never recorded)
side.synchronize()  # (synchronize stream)
torch.cuda.synchronize()  # (synchronize device)
event.synchronize()  # (synchronize event)
weight.detach().sum().item()  # (item)
uploaded.cpu()  # (download)
storage = y.untyped_storage()
storage.resize_(0)  # (resize)
"""


@pytest.fixture(scope="module")
def recording(program):
    return program.run(SOURCE)


@pytest.fixture(scope="module")
def streams(recording):
    names = {
        event["name"]: event["stream"]
        for event in recording.events
        if event["kind"] == "name" and "stream" in event
    }
    [default] = {
        event["stream"]
        for event in recording.events
        if event["kind"] == "stream_create" and event["legacy_default"]
    }
    return {"side": names["side"], "default": default}


def test_pool_streams_are_announced(recording):
    created = [event for event in recording.events if event["kind"] == "stream_create"]
    assert sum(not event["legacy_default"] for event in created) == 128
    assert all(event["blocking"] == event["legacy_default"] for event in created)


def test_wait_stream_is_a_record_and_a_wait(recording, streams):
    record, wait = recording.at("wait_stream", "event_record", "event_wait")
    assert (record["kind"], record["stream"]) == ("event_record", streams["default"])
    assert (wait["kind"], wait["stream"]) == ("event_wait", streams["side"])
    assert record["event"] == wait["event"]


def test_record_stream_is_told_and_its_guard_comes_with_the_free(recording, streams):
    [event] = recording.at("record_stream")
    assert (event["kind"], event["stream"]) == ("record_stream", streams["side"])
    request, guard = recording.at("free")
    assert request["kind"] == "free_request"
    assert (guard["kind"], guard["stream"]) == ("free_guard", streams["side"])
    assert guard["block"] == request["block"]


def test_the_next_allocation_finds_the_guard_finished(recording):
    done, *_ = recording.at("reuse", "free_done")
    [before] = recording.at("allocate", "alloc")[-1:]
    [after] = recording.at("reuse", "alloc")
    assert done["block"] == before["block"]
    assert done["number"] < after["number"]
    assert (after["address"], before["block"] != after["block"]) == (before["address"], True)


def test_blocks_have_owner_size_and_name(recording, streams):
    alloc = recording.at("allocate", "alloc")[-1]
    assert (alloc["stream"], alloc["space"]) == (streams["default"], "cached 0")
    [size] = recording.at("allocate", "block_size")
    assert size["size"] == 4 << 20
    assert recording.names[alloc["block"]] == "x"


@pytest.mark.parametrize("prefix", ["", "generic "])
def test_a_query_that_succeeds_is_a_wait_by_the_program(recording, prefix):
    [record] = recording.at(f"{prefix}record", "event_record")
    waits = recording.at(f"{prefix}query")
    assert record["kind"] == "event_record"
    assert [(wait["kind"], wait["event"], wait["observer"], wait["how"]) for wait in waits] == [
        ("host_wait", record["event"], "Program", "Query")
    ]


def test_a_dropped_pinned_tensor_is_watched_by_its_allocator(recording):
    region, pinned = recording.at("pin", "alloc")
    assert region["space"] == pinned["space"] == "pinned"
    assert recording.names[pinned["block"]] == "pinned"
    [again] = recording.at("pin again", "alloc")
    assert (again["address"], recording.names[again["block"]]) == (pinned["address"], "again")
    [upload] = recording.at("upload", "op")
    assert upload["op"] == "CopyHostToDevice"
    assert {access["mode"] for access in upload["accesses"]} == {"read", "write"}
    [record] = recording.at("drop pinned", "event_record")
    waits = [
        event
        for event in recording.events
        if event["kind"] == "host_wait" and event.get("event") == record["event"]
    ]
    assert [wait["observer"] for wait in waits] == ["PinnedAllocator"]
    assert recording.at("upload", "host_wait") == []


def test_backward_shows_the_engines_synchronization(recording, streams):
    engine = recording.at("backward", "event_record", "event_wait")
    assert ("event_record", streams["default"]) in {(event["kind"], event["stream"]) for event in engine}
    assert ("event_wait", streams["side"]) in {(event["kind"], event["stream"]) for event in engine}
    # At its end the stream that was current waits for the leaf's.
    assert (engine[-2]["kind"], engine[-2]["stream"]) == ("event_record", streams["side"])
    assert (engine[-1]["kind"], engine[-1]["stream"]) == ("event_wait", streams["default"])


def test_operations_of_backward_have_the_line_of_forward(recording, streams):
    operations = recording.at("backward", "op")
    on_engine = [event for event in operations if event["thread"] != 0]
    assert on_engine and {event["stream"] for event in on_engine} == {streams["side"]}
    for event in on_engine:
        assert recording.user_line(event, "forward_stack") in recording.lines("forward")


def test_a_gradient_recorded_in_c_is_guarded(recording, streams):
    [guard] = recording.at("backward", "free_guard")
    assert guard["stream"] == streams["side"]


def test_a_delay_is_an_operation_and_no_gap(recording):
    [operation] = recording.at("sleep")
    assert (operation["kind"], operation["label"], operation["accesses"]) == ("op", "torch.cuda._sleep", [])


def test_a_launch_without_an_operator_is_a_gap(recording):
    [gap] = recording.at("opaque", "gap")
    assert gap["reason"] == "OpaqueKernel"
    assert "neg" in gap["detail"]
    assert recording.gaps() == [("OpaqueKernel", gap["detail"])]


def test_a_wait_for_an_event_without_a_record(recording, streams):
    [wait] = recording.at("never recorded")
    assert (wait["kind"], wait["stream"]) == ("event_wait", streams["side"])
    assert not any(
        event["kind"] == "event_record" and event["event"] == wait["event"] for event in recording.events
    )


@pytest.mark.parametrize(
    ("label", "target"),
    [("synchronize stream", "stream"), ("synchronize device", "device"), ("synchronize event", "event")],
)
def test_synchronizations_are_waits_by_the_program(recording, label, target):
    [wait] = recording.at(label, "host_wait")
    assert target in wait
    assert (wait["observer"], wait["how"]) == ("Program", "Synchronize")


@pytest.mark.parametrize("label", ["item", "download"])
def test_a_read_back_registers_the_copy_and_then_waits(recording, label):
    kinds = [event["kind"] for event in recording.at(label, "op", "host_wait")]
    copy = next(event for event in recording.at(label, "op") if event["op"] == "CopyDeviceToHost")
    wait = recording.at(label, "host_wait")[-1]
    assert copy["number"] < wait["number"]
    assert wait["observer"] == "Program"
    assert kinds[-1] == "host_wait"


def test_resizing_a_storage_frees_its_block(recording):
    [request] = recording.at("resize", "free_request")
    assert recording.names[request["block"]] == "y"


def test_streams_in_sight_are_told(recording, streams):
    [frame] = [
        frame for event in recording.at("wait_stream")[:1] for frame in event["stack"] if frame["user"]
    ]
    assert frame["streams"] == {"side": streams["side"], "current": streams["default"]}
