"""Items that lie in files are read when they are needed; results go to one file."""

import dataclasses
import json
import tempfile
from pathlib import Path

import torch

import streamsan

folder = tempfile.TemporaryDirectory()
home = Path(folder.name)
values = torch.arange(12 * 1000, dtype=torch.int32).reshape(12, 10, 100)
(home / "a.raw").write_bytes(b"head" + values[:5].numpy().tobytes())
(home / "b.raw").write_bytes(b"head" + values[5:].numpy().tobytes())
paths = [home / "a.raw", str(home / "b.raw")]
records = streamsan.read_records(paths, (10, 100), torch.int32, offset=4)
assert len(records) == 12 and torch.equal(records[6].read(), values[6])

with streamsan.FileSink(home / "out.raw") as sink:
    streamsan.pipeline(lambda x: x * 2, records, out=sink)
assert (home / "out.raw").read_bytes() == (values * 2).numpy().tobytes()
assert sink.offsets == [4000 * index for index in range(13)]
results = streamsan.pipeline(lambda x: x + 1, iter(records), pack=1)
assert torch.equal(torch.stack(list(results)), values + 1)

# A record that is larger than a slot, cut while it is read; and one beside a tensor, in a dict.
whole = streamsan.read_records(home / "a.raw", (50, 100), torch.int32, offset=4)
results = streamsan.pipeline(lambda x: x + 1, whole, chunk=True, memory=16384)
assert torch.equal(results[0], values[:5].reshape(50, 100) + 1)
pairs = [{"x": record, "factor": torch.tensor([index])} for index, record in enumerate(records)]
results = streamsan.pipeline(lambda pair: pair["x"] * pair["factor"], pairs)
assert torch.equal(torch.stack(list(results)), values * torch.arange(12).view(12, 1, 1))

# A safetensors file, by its format.
header = json.dumps(
    {
        "__metadata__": {"made": "by hand"},
        "ids": {"dtype": "I32", "shape": [10, 100], "data_offsets": [0, 4000]},
        "empty": {"dtype": "BF16", "shape": [0], "data_offsets": [4000, 4000]},
    }
).encode()
(home / "x.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + values[3].numpy().tobytes())
named = streamsan.read_safetensors(home / "x.safetensors")
assert list(named) == ["ids", "empty"] and named["empty"].dtype is torch.bfloat16
results = streamsan.pipeline(lambda x: x.sum(), [named["ids"], named["ids"]])
assert [result.item() for result in results] == [values[3].sum().item()] * 2

# What is wrong is said: with the file, or for the item whose bytes are missing.
for action, said in (
    (lambda: streamsan.read_records(home / "a.raw", (7,), torch.int32), "no whole number"),
    (lambda: streamsan.read_records(home / "a.raw", (0,), torch.int32), "no bytes"),
    (lambda: streamsan.read_safetensors(home / "a.raw"), "no safetensors file"),
):
    try:
        action()
        raise AssertionError(said)
    except streamsan.StreamsanError as error:
        assert said in str(error), error
short = dataclasses.replace(records[-1], offset=records[-1].offset + 100)
missing = dataclasses.replace(records[-1], path=home / "none.raw")
try:
    with streamsan.FileSink(home / "part.raw") as sink:
        streamsan.pipeline(lambda x: x, [records[0], records[1], short, records[3], missing], out=sink)
    raise AssertionError("nothing was raised")
except streamsan.PipelineError as error:
    stages = [(one.index, one.stage) for one in error.errors]
    assert stages == [(2, "source"), (3, "out"), (4, "source")], stages
    assert "b.raw ends after 28004 bytes" in str(error) and "item 2 has no result" in str(error)
assert (home / "part.raw").read_bytes() == values[:2].numpy().tobytes()
folder.cleanup()
