"""`streamsan.audit` in processes that are recorded, and the live check that it asks."""

PREPARE = """
import asyncio, threading, warnings
import torch, streamsan
side = torch.cuda.Stream()
x = torch.ones(1024, device="cuda")
side.wait_stream(torch.cuda.current_stream())

@streamsan.audit
def consume(batch, *more, scale=None, **rest):
    return batch * 2

def refused(call):
    try:
        call()
    except streamsan.AuditError as error:
        return error
    return None

def unsafe(call):
    error = refused(call)
    return None if error is None else (error.arguments, [finding.rule for finding in error.report])
"""


def run(program, source, *options):
    return program.run(PREPARE + source, *options).stdout.splitlines()


def test_a_call_is_refused_before_anything_is_done_and_told_what_to_insert(program):
    recording = program.run(
        PREPARE
        + """
x.fill_(1)  # (fill)
before = streamsan._core.operations_recorded()
with torch.cuda.stream(side):
    error = refused(lambda: 1)
    try:
        consume(x)  # (call)
    except streamsan.AuditError as raised:
        error = raised
print(error)
print(streamsan._core.operations_recorded() - before, error.function, error.arguments)
finding = error.report.findings[0]
print(finding.rule, finding.first.stack[0].line, finding.second.stack[0].line, finding.fix.insert)
side.wait_stream(torch.cuda.default_stream())
with torch.cuda.stream(side):
    consume(x)
print("called")
"""
    )
    fill, call = recording.lines("fill")[0], recording.lines("call")[0]
    text = recording.stdout
    assert text.startswith("consume() was not called: 1 argument is not safe to use on the current stream\n")
    assert "argument `batch`:\nerror[SS101]: unordered read-after-write on `x`" in text
    assert f"{fill} | x.fill_(1)" in text and f"{call} |         consume(x)" in text
    assert f":{call}, make `side` wait:\n      side.wait_stream(torch.cuda.default_stream())" in text
    assert text.splitlines()[-3:] == [
        "0 consume ('batch',)",
        f"SS101 {fill} {call} side.wait_stream(torch.cuda.default_stream())",
        "called",
    ]


def test_every_tensor_of_a_call_is_looked_at(program):
    assert run(
        program,
        """
y, z = torch.zeros(8, device="cuda"), torch.zeros(8)
with torch.cuda.stream(side):
    print(unsafe(lambda: consume(z, 3, None, "text")))
    print(unsafe(lambda: consume(x, scale=z)))
    print(unsafe(lambda: consume(z, x, y)))
    print(unsafe(lambda: consume({"a": [x, (y,)]}, scale=y, other=[y])))
torch.cuda.synchronize()
with torch.cuda.stream(side):
    print(unsafe(lambda: consume(x, y, scale=y, other=y)))
""",
    ) == [
        "None",
        "None",
        "(('more[1]',), ['SS101'])",
        "((\"batch['a'][1][0]\", 'scale', 'other[0]'), ['SS101', 'SS101', 'SS101'])",
        "None",
    ]


def test_bytes_that_nobody_touches_are_ordered(program):
    # Rows and columns of one buffer: the bytes decide, not the tensor.
    assert run(
        program,
        """
x = torch.zeros(64, 64, device="cuda")
side.wait_stream(torch.cuda.current_stream())
x[:, :32].fill_(1)
with torch.cuda.stream(side):
    print(unsafe(lambda: consume(x[:, 32:])), unsafe(lambda: consume(x[3])), unsafe(lambda: consume(x[:, 31:40])))
""",
    ) == ["None (('batch',), ['SS101']) (('batch',), ['SS101'])"]


def test_what_is_written_must_not_be_read_any_more(program):
    assert run(
        program,
        """
@streamsan.audit(reads=["x"], writes=["out"])
def write(x, out, other=None):
    out.copy_(x)

@streamsan.audit(writes=["out"])
def update(out):
    out.add_(1)

out = torch.zeros(1024, device="cuda")
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    y = out + 1
print(unsafe(lambda: write(x, out)), unsafe(lambda: update(out)), unsafe(lambda: consume(out)))
print(unsafe(lambda: write(x, y)), unsafe(lambda: update(out=y)), unsafe(lambda: write(x, x, other=y)))
torch.cuda.current_stream().wait_stream(side)
print(unsafe(lambda: write(x, out)), unsafe(lambda: update(y)))
""",
    ) == [
        "(('out',), ['SS102']) (('out',), ['SS102']) None",
        "(('out',), ['SS103']) (('out',), ['SS101']) None",
        "None None",
    ]


def test_memory_of_an_earlier_owner_and_lifetimes(program):
    assert run(
        program,
        """
with torch.cuda.stream(side):
    y = torch.ones(1 << 20, device="cuda")
torch.cuda.current_stream().wait_stream(side)
z = y * 2
del y
with torch.cuda.stream(side):
    new = torch.empty(1 << 20, device="cuda")
    print(unsafe(lambda: consume(new)))

@streamsan.audit(lifetime="record")
def keep(batch):
    return batch + 1

@streamsan.audit(writes=["out"])
def fill(out):
    out.zero_()

with torch.cuda.stream(side):
    print(unsafe(lambda: fill(new)))
torch.cuda.synchronize()
with torch.cuda.stream(side):
    print(unsafe(lambda: keep(new)))
    error = refused(lambda: keep(x))
    print(error.arguments, len(error.report))
    print(str(error).splitlines()[3])
    print(str(error).splitlines()[4])
    x.record_stream(side)
    print(unsafe(lambda: keep(x)))
""",
    ) == [
        "None",
        "(('out',), ['SS202'])",
        "None",
        "('batch',) 0",
        "error: its memory was allocated on the default stream, and record_stream was not called for `side`, "
        "which is about to use it",
        "  help: at the start of keep(): batch.record_stream(torch.cuda.current_stream())",
        "None",
    ]


def test_copies_of_page_locked_tensors(program):
    assert run(
        program,
        """
host = torch.zeros(1024, pin_memory=True)
with torch.cuda.stream(side):
    host.copy_(x, non_blocking=True)
print(unsafe(lambda: consume(host)))
with torch.cuda.stream(side):
    print(unsafe(lambda: consume(host)))
side.synchronize()
print(unsafe(lambda: consume(host)))
""",
    ) == ["(('batch',), ['SS101'])", "None", "None"]


def test_methods_coroutines_generators_and_threads(program):
    assert run(
        program,
        """
class Model:
    @streamsan.audit
    def step(self, batch):
        return batch + 1

    @staticmethod
    @streamsan.audit
    def static(batch):
        return batch + 1

    @streamsan.audit
    @classmethod
    def of_class(cls, batch):
        return batch + 1

@streamsan.audit
async def later(batch):
    await asyncio.sleep(0)
    return batch + 1

@streamsan.audit
def steps(batch):
    received = yield batch + 1
    yield received
    return "end"

x.fill_(1)
with torch.cuda.stream(side):
    made, coroutine = steps(x), later(x)
    for call in (lambda: Model().step(x), lambda: Model.static(x), lambda: Model.of_class(x),
                 lambda: asyncio.run(coroutine), lambda: next(made)):
        error = refused(call)
        print(error.function, error.arguments)
caught = []
def other():
    with torch.cuda.stream(side):
        caught.append(unsafe(lambda: consume(x)))
thread = threading.Thread(target=other)
thread.start(); thread.join()
print(caught)
torch.cuda.synchronize()
with torch.cuda.stream(side):
    made = steps(x)
    next(made)
    print(Model.of_class(x).shape, asyncio.run(later(x)).shape, made.send("sent"), next(made, "done"))
import copy, pickle
print(pickle.loads(pickle.dumps(error)).arguments, isinstance(error, streamsan.HazardError), streamsan.auditing())
""",
    ) == [
        "Model.step ('batch',)",
        "Model.static ('batch',)",
        "Model.of_class ('batch',)",
        "later ('batch',)",
        "steps ('batch',)",
        "[(('batch',), ['SS101'])]",
        "torch.Size([1024]) torch.Size([1024]) sent done",
        "('batch',) True True",
    ]


def test_ignores_and_sessions_go_with_it(program):
    assert run(
        program,
        """
x.fill_(1)
with streamsan.sanitize() as session:
    with torch.cuda.stream(side):
        print(unsafe(lambda: consume(x)))
        with streamsan.ignore("SS101", reason="a test"):
            print(unsafe(lambda: consume(x)))
print(session.report.ok)
try:
    with streamsan.sanitize():
        x.fill_(1)
        with torch.cuda.stream(side):
            y = x + 1
        consume(y.cpu())
except streamsan.HazardError as error:
    print(type(error).__name__)
""",
    ) == ["(('batch',), ['SS101'])", "None", "True", "HazardError"]


def test_a_call_inside_of_compiled_code_is_audited(program):
    assert run(
        program,
        """
@torch.compile(backend="eager")
def step(batch):
    return consume(batch + 0) + consume(x)

x.fill_(1)
y = torch.zeros(1024, device="cuda")
print(step(y).sum().item())
x.fill_(2)
with torch.cuda.stream(side):
    side.wait_stream(torch.cuda.default_stream())
    print(step(y).sum().item())
x.fill_(3)
with torch.cuda.stream(side):
    print(unsafe(lambda: step(y)))
""",
    ) == ["2048.0", "4096.0", "(('batch',), ['SS101'])"]


def test_a_thread_that_goes_quiet_after_a_free_holds_nothing_back(program):
    # Its last event record may be the program's: the recorder waits for a callback that does not come.
    assert run(
        program,
        """
import time
held, done = threading.Event(), threading.Event()
def other():
    y = torch.ones(1024, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        z = y + 1
    y.record_stream(side)
    del y
    held.set()
    done.wait()

thread = threading.Thread(target=other)
thread.start()
held.wait()
x.fill_(1)
with torch.cuda.stream(side):
    print(unsafe(lambda: consume(x)))
from streamsan import _core
live = _core.Live(_core.trace_path())
last = _core.settle()
print(live.catch_up(last, 5.0)[1])
done.set()
thread.join()
""",
    ) == ["(('batch',), ['SS101'])", "True"]


def test_a_training_loop_with_a_prefetch_stream_is_let_through(program):
    assert run(
        program,
        """
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
optimizer = torch.optim.AdamW(model.parameters())

@streamsan.audit
def train(batch, target):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(batch), target)
    loss.backward()
    optimizer.step()
    return loss

@streamsan.audit(writes=["staging"])
def load(staging):
    staging.fill_(1)

host = torch.zeros(16, 64, pin_memory=True)
target = torch.zeros(16, 1, device="cuda")
uploaded = None
for step in range(30):
    load(host)
    with torch.cuda.stream(side):
        batch = host.to("cuda", non_blocking=True)
        uploaded = torch.cuda.Event()
        uploaded.record()
    torch.cuda.current_stream().wait_event(uploaded)
    batch.record_stream(torch.cuda.current_stream())
    loss = train(batch, target)
    uploaded.synchronize()
print("trained", step)
""",
    ) == ["trained 29"]
