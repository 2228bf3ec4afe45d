"""What the host does with page-locked memory: accesses, generations, pointers that are given away."""

import pytest

# One line of a program each: what it does, and what is recorded of `pinned`, 16 floats long.
ACCESSES = {
    "pinned[3].item()": ["read 12..16"],
    "int(pinned[1])": ["read 4..8"],
    "float(pinned[1])": ["read 4..8"],
    "bool(pinned[0])": ["read 0..4"],
    "pinned.tolist()": ["read 0..64"],
    "pinned.view(4, 4)[:, 1].tolist()": ["read 4..56 strided"],
    "pinned.sum()": ["read 0..64"],
    "pinned.view(4, 4)[:, 2].sum()": ["read 8..60 strided"],
    "pinned[4:8].clone()": ["read 16..32"],
    "pinned.fill_(1)": ["write 0..64"],
    "pinned.zero_()": ["write 0..64"],
    "pinned.add_(1)": ["update 0..64"],
    "pinned.view(4, 4)[::2].mul_(2)": ["update 0..48 strided"],
    "pinned[2] = 5": ["write 8..12"],
    "pinned[2:4] = pageable[:2]": ["write 8..16"],
    "pinned.copy_(pageable)": ["write 0..64"],
    "pageable.copy_(pinned)": ["read 0..64"],
    "pinned.copy_(pinned.flip(0))": ["read 0..64", "write 0..64"],
    "torch.add(pageable, 1, out=pinned)": ["write 0..64"],
    "torch.stack([pinned, pageable])": ["read 0..64"],
    "torch.equal(pinned, pageable)": ["read 0..64"],
    "pinned.to(torch.float64)": ["read 0..64"],
    "pinned.pin_memory()": [],
    "pinned.view(2, 8).t()": [],
    "pinned.is_pinned()": [],
    "torch.zeros_like(pinned)": [],
    "copy.deepcopy(pinned)": ["read 0..64"],
    "torch.save(pinned, io.BytesIO())": ["read 0..64"],
    "torch.cat([pinned]).sum()": ["read 0..64"],
    "torch.from_numpy(pinned.numpy()).add_(1)": ["update 0..64"],
    "if pinned[0] > 1e9: pass": ["read 0..4"],
    "device + pinned[5]": ["read 20..24"],
    "device[pinned[:1].long()]": ["read 0..4"],
    "device.copy_(pinned)": [],
    "device.copy_(pinned, non_blocking=True)": [],
    "pinned.to('cuda', torch.float64)": ["read 0..64"],
    "pinned.resize_(4).resize_(16)": [],
}

ACCESS_SOURCE = """\
import copy, io
import torch

device = torch.ones(16, device="cuda")
pageable = torch.ones(16)
pinned = torch.ones(16, pin_memory=True)
"""


@pytest.fixture(scope="module")
def accesses(program):
    pytest.importorskip("numpy")
    return program.run(ACCESS_SOURCE + "\n".join(ACCESSES) + "\n")


@pytest.mark.parametrize("line", ACCESSES)
def test_the_host_touches(accesses, line):
    number = accesses.source.splitlines().index(line) + 1
    found = []
    for event in accesses.events:
        if event["kind"] != "host_access" or accesses.user_line(event) != number:
            continue
        for access in event["accesses"]:
            if accesses.names.get(access["block"]) == "pinned":
                end = access["offset"] + access["length"]
                strided = " strided" if access["shape"] else ""
                found.append(f"{access['mode']} {access['offset']}..{end}{strided}")
    assert found == ACCESSES[line]


GENERATIONS = """\
import torch

device = torch.ones(256, device="cuda")
first = torch.empty(256, pin_memory=True)  # (empty)
address = first.data_ptr()
device.copy_(first, non_blocking=True)
del first
torch.cuda.synchronize()  # on a GPU the block comes back once the copy is done
second = torch.zeros(256, pin_memory=True)  # (zeros)
assert second.data_ptr() == address
del second
third = torch.ones(256).pin_memory()  # (pin_memory)
assert third.data_ptr() == address
del third
fourth = device.to("cpu", non_blocking=True)  # (to)
assert fourth.is_pinned() and fourth.data_ptr() == address
torch.cuda.synchronize()
fifth = device.to("cpu", torch.float16, non_blocking=True)  # (to another type)
assert fifth.is_pinned() and fifth.dtype == torch.float16
strided = device.view(16, 16).t().to("cpu", non_blocking=True)  # (to strided)
assert strided.is_pinned() and strided.stride() == (1, 16)
torch.cuda.synchronize()
assert torch.equal(strided, device.view(16, 16).t().cpu())
grown = torch.empty(4, pin_memory=True)
grown.resize_(1 << 12)  # (resize)
grown.untyped_storage().resize_(1 << 16)  # (resize storage)
device.sum().item()  # (item)
"""


@pytest.fixture(scope="module")
def generations(program):
    return program.run(GENERATIONS)


def announced(recording, label):
    """The last page-locked block of a line: torch's, after the runtime's if that is new."""
    return [event for event in recording.at(label, "alloc") if event["space"] == "pinned"][-1]


@pytest.mark.parametrize(
    "label",
    ["empty", "zeros", "pin_memory", "to", "to another type", "to strided", "resize", "resize storage"],
)
def test_each_hand_out_is_a_new_generation(generations, label):
    block = announced(generations, label)
    same_place = [
        event["block"]
        for event in generations.events
        if event["kind"] == "alloc"
        and event["space"] == "pinned"
        and event["address"] == block["address"]
        and event["number"] < block["number"]
    ]
    assert same_place and block["block"] not in same_place


@pytest.mark.parametrize("label", ["to", "to another type", "to strided"])
def test_a_download_is_to_a_block_that_was_announced(generations, label):
    block = announced(generations, label)
    [copy] = [event for event in generations.at(label, "op") if event["op"] == "CopyDeviceToHost"]
    assert block["number"] < copy["number"]
    assert [access["block"] for access in copy["accesses"] if access["mode"] == "write"] == [block["block"]]
    assert generations.at(label, "host_wait") == []


def test_generations_of_one_address(generations):
    blocks = [announced(generations, label) for label in ("empty", "zeros", "pin_memory", "to")]
    assert len({block["address"] for block in blocks}) == 1
    assert len({block["block"] for block in blocks}) == 4
    assert [generations.names[block["block"]] for block in blocks] == ["first", "second", "third", "fourth"]
    frees = [event for event in generations.events if event["kind"] == "free_request"]
    assert not {event["block"] for event in frees} & {block["block"] for block in blocks}


def test_item_reads_back_through_memory_of_its_own(generations):
    [copy] = [event for event in generations.at("item", "op") if event["op"] == "CopyDeviceToHost"]
    assert [access["mode"] for access in copy["accesses"]] == ["read"]


ESCAPES = """\
import numpy
import torch

pinned = torch.ones(16, pin_memory=True)
pageable = torch.ones(16)
device = torch.ones(16, device="cuda")
pinned.numpy()  # (numpy)
numpy.asarray(pinned)  # (asarray)
pinned.data_ptr()  # (data_ptr)
pinned[2:].data_ptr()  # (view)
pinned.untyped_storage()  # (untyped_storage)
torch.utils.dlpack.to_dlpack(pinned)  # (to_dlpack)
numpy.from_dlpack(pinned)  # (from_dlpack)
pageable.numpy(), pageable.data_ptr(), device.data_ptr(), device.untyped_storage()  # (no escape)
pinned.sum().backward if False else pinned.sum()  # (operator)
print(pinned)  # (print)
"""


@pytest.fixture(scope="module")
def escapes(program):
    """As on a GPU, where what is done through a pointer is not seen."""
    pytest.importorskip("numpy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAMSAN_PROTECT", "0")
        return program.run(ESCAPES)


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("numpy", "numpy()"),
        ("asarray", "numpy()"),
        ("data_ptr", "data_ptr()"),
        ("view", "data_ptr()"),
        ("untyped_storage", "untyped_storage()"),
        ("to_dlpack", "dlpack()"),
        ("from_dlpack", "dlpack()"),
    ],
)
def test_a_pointer_is_given_away(escapes, line, label):
    [event] = escapes.at(line, "escape")
    assert (event["label"], escapes.names[event["block"]]) == (label, "pinned")


@pytest.mark.parametrize("line", ["no escape", "operator", "print"])
def test_no_pointer_is_given_away(escapes, line):
    assert escapes.at(line, "escape") == []
