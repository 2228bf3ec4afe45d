"""What interpreters differ in: watchers of every line, further interpreters, warnings about what is going away."""

import sys

WATCHED = """
import sys
import torch

def quiet(*_):
    return quiet

sys.setprofile(quiet)
sys.settrace(quiet)
if hasattr(sys, "monitoring"):
    events = sys.monitoring.events
    chosen = events.LINE | events.CALL | events.INSTRUCTION | events.PY_RETURN
    sys.monitoring.use_tool_id(3, "watcher")
    for event in (events.LINE, events.CALL, events.INSTRUCTION, events.PY_RETURN):
        sys.monitoring.register_callback(3, event, lambda *_: None)
    sys.monitoring.set_events(3, chosen)


def work():
    x = torch.ones(4, device="cuda"); y = torch.empty_like(x)  # (1)
    return torch.relu(
        x
        + y  # (2)
    )


work()
"""


def test_lines_and_columns_under_a_profiler_and_a_debugger(program):
    recording = program.run(WATCHED)
    places = {}
    for event in recording.events:
        if event["kind"] == "op":
            frame = next(frame for frame in event["stack"] if frame["user"])
            places[event["label"]] = (frame["line"], frame["column"], frame["end_column"])
    made, added = recording.lines("1")[0], recording.lines("2")[0]
    if sys.version_info < (3, 11):
        assert {label: line for label, (line, _, _) in places.items()} == {
            "aten::ones": made,
            "aten::add": added - 1,
            "aten::relu": added - 2,
        }
        assert all((column, end) == (0, 0) for _, column, end in places.values())
        return
    line, column, end = places["aten::ones"]
    assert line == made
    assert WATCHED.splitlines()[line - 1][column - 1 : end - 1] == 'torch.ones(4, device="cuda")'
    assert places["aten::add"][0] == added - 1
    assert places["aten::relu"][0] == added - 2


INSIDE = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import torch

x = torch.ones(4, device="cuda")
inner = interpreters.create()
interpreters.run_string(inner, "print('inside', flush=True)")
interpreters.destroy(inner)
y = x + 1  # (1)
print(y.sum().item())
"""


def test_the_end_of_an_inner_interpreter_ends_nothing(program):
    recording = program.run(INSIDE)
    assert recording.stdout == "inside\n8.0\n"
    assert "op" in recording.kinds("1")


DEPRECATED = """
import warnings

import torch

warnings.simplefilter("error", DeprecationWarning)
warnings.simplefilter("error", PendingDeprecationWarning)
side = torch.cuda.Stream()
event = torch.cuda.Event(enable_timing=True)
weight = torch.ones(8, 8, device="cuda", requires_grad=True)
host = torch.ones(8).pin_memory()
with torch.cuda.stream(side):
    batch = host.to("cuda", non_blocking=True)
    event.record()
torch.cuda.current_stream().wait_event(event)
(batch @ weight).sum().backward()
side.synchronize()
print(weight.grad.sum().item(), batch.cpu().numpy().sum(), weight.detach().cpu().tolist()[0][0])
"""


def test_nothing_of_ours_uses_what_goes_away(program):
    assert program.run(DEPRECATED).stdout == "64.0 8.0 1.0\n"
