"""Which bytes operators read and write: one line for each operator, and what must be recorded of it."""

import pytest

# Statement; then the operations it makes, each as label and accesses. Blocks are called by the names of the
# prelude, and `new` if the statement made them.
CASES = [
    # Views and questions touch nothing.
    ("a.view(16)", []),
    ("a[1:, ::2]", []),
    ("a.t()", []),
    ("a.detach()", []),
    ("a.split(2)", []),
    ("a.unbind()", []),
    ("a.expand(2, 4, 4)", []),
    ("a.as_strided((2, 2), (1, 4))", []),
    ("a.squeeze(); a.unsqueeze(0)", []),
    ("a.reshape(2, 8)", []),
    ("a.data_ptr(); a.size(); a.is_pinned()", []),
    ("a.is_same_size(b)", []),
    ("d.unsqueeze_(0); d.squeeze_(0); d.t_(); d.t_()", []),
    ("d.detach_()", []),
    ("d.set_(c)", []),
    ("a.record_stream(side)", []),
    # Allocations touch nothing; filled ones are written.
    ("torch.empty(4, device='cuda')", []),
    ("torch.empty_strided((2, 2), (1, 2), device='cuda')", []),
    ("torch.empty_like(a)", []),
    ("a.new_empty(3)", []),
    ("d.resize_(2, 2)", []),
    # Growing moves the old bytes to a new block.
    ("d.resize_(8, 8)", ["aten::resize_ read d, write new"]),
    ("torch.zeros(4, device='cuda')", ["aten::zeros write new"]),
    ("torch.full((4,), 2.0, device='cuda')", ["aten::full write new"]),
    ("torch.arange(4, device='cuda')", ["aten::arange write new"]),
    ("torch.zeros_like(a)", ["aten::zeros_like write new"]),
    ("torch.ones_like(a)", ["aten::ones_like write new"]),
    ("torch.full_like(a, 3)", ["aten::full_like write new"]),
    ("torch.rand_like(a)", ["aten::rand_like write new"]),
    ("a.new_zeros(4)", ["aten::new_zeros write new"]),
    ("torch.randn(4, device='cuda')", ["aten::randn write new"]),
    # Results are written, inputs are read.
    ("a + b", ["aten::add read a, read b, write new"]),
    ("a * a", ["aten::mul read a, read a, write new"]),
    ("a.clone()", ["aten::clone read a, write new"]),
    ("a.contiguous()", []),
    ("a.t().contiguous()", ["aten::clone read a, write new"]),
    ("a.half()", ["aten::_to_copy read a, write new"]),
    ("torch.where(mask, a, b)", ["aten::where read mask, read a, read b, write new"]),
    ("torch.cat([a, b])", ["aten::cat read a, read b, write new"]),
    ("torch.stack([a, b])", ["aten::stack read a, read b, write new"]),
    ("a.max(dim=0)", ["aten::max read a, write new, write new"]),
    ("a.topk(2)", ["aten::topk read a, write new, write new"]),
    ("torch.addmm(c, a, b)", ["aten::addmm read c, read a, read b, write new"]),
    ("torch.nn.functional.linear(a, b, v)", ["aten::addmm read v, read a, read b, write new"]),
    ("torch.clamp(a, v)", ["aten::clamp read a, read v, write new"]),
    ("torch.clamp(a, max=v)", ["aten::clamp read a, read v, write new"]),
    # In place: read and written, or only written.
    ("a.add_(b)", ["aten::add_ update a, read b"]),
    ("a.relu_()", ["aten::relu_ update a"]),
    ("a.zero_()", ["aten::zero_ write a"]),
    ("a.fill_(2)", ["aten::fill_ write a"]),
    ("a.fill_(w)", ["aten::fill_ write a, read w"]),
    ("a.normal_()", ["aten::normal_ write a"]),
    ("a.copy_(b)", ["aten::copy_ write a, read b"]),
    ("a[1] = b[1]", ["aten::copy_ write a, read b"]),
    ("a[1] = 5.0", ["aten::fill_ write a"]),
    ("a += b", ["aten::add_ update a, read b"]),
    ("a.index_add_(0, i, b)", ["aten::index_add_ update a, read i, read b"]),
    ("a.masked_fill_(mask, 0.0)", ["aten::masked_fill_ update a, read mask"]),
    # `out=`
    ("torch.add(a, b, out=c)", ["aten::add read a, read b, write c"]),
    ("torch.mm(a, b, out=c)", ["aten::mm read a, read b, write c"]),
    ("torch.max(a, 0, out=(v, i))", ["aten::max read a, write v, write i"]),
    ("torch.cat([a, b], out=long)", ["aten::cat read a, read b, write long"]),
    # Indexing.
    ("a[i]", ["aten::index read a, read i, write new"]),
    ("a[i] = b", ["aten::index_put_ update a, read i, read b"]),
    ("a.index_select(0, i)", ["aten::index_select read a, read i, write new"]),
    ("a.gather(0, i.view(1, 4))", ["aten::gather read a, read i, write new"]),
    ("torch.nn.functional.embedding(i, a)", ["aten::embedding read a, read i, write new"]),
    # Lists.
    ("torch._foreach_add_([a, b], 1.0)", ["aten::_foreach_add_ update a, update b"]),
    ("torch._foreach_add_([a, b], [c, d])", ["aten::_foreach_add_ update a, update b, read c, read d"]),
    ("torch._foreach_mul([a, b], 2.0)", ["aten::_foreach_mul read a, read b, write new, write new"]),
    ("torch._foreach_copy_([a, b], [c, d])", ["aten::_foreach_copy_ write a, write b, read c, read d"]),
    ("torch._foreach_zero_([a, b])", ["aten::_foreach_zero_ write a, write b"]),
    (
        "torch._fused_sgd_([a], [b], [], weight_decay=0, momentum=0, lr=0.1, dampening=0, nesterov=False,"
        " maximize=False, is_first_step=True)",
        ["aten::_fused_sgd_ update a, update b"],
    ),
    (
        "torch._fused_adamw_([a], [b], [c], [d], [], [w], lr=0.1, beta1=0.9, beta2=0.9, weight_decay=0.0, eps=1e-8,"
        " amsgrad=False, maximize=False)",
        ["aten::_fused_adamw_ update a, update b, update c, update d, read w"],
    ),
    # Running statistics are written in training.
    (
        "torch.nn.functional.batch_norm(a, v, u, training=True)",
        ["aten::_native_batch_norm_legit read a, update v, update u, write new, write new, write new"],
    ),
    (
        "torch.native_batch_norm(a, None, None, v, u, True, 0.1, 1e-5)",
        ["aten::_native_batch_norm_legit read a, update v, update u, write new, write new, write new"],
    ),
    (
        "torch.nn.functional.batch_norm(a, v, u, training=False)",
        ["aten::_native_batch_norm_legit_no_training read a, read v, read u, write new"],
    ),
    # Across devices.
    ("a.cpu()", ["aten::_to_copy read a"]),
    ("host.cuda()", ["aten::_to_copy write new"]),
    ("host.to('cuda', torch.half)", ["aten::copy_ write new"]),
    ("a.t().cpu()", ["aten::_to_copy read a"]),
    ("a[:, ::2].cpu()", ["aten::clone read a, write new", "aten::copy_ read new"]),
    (
        "a.to('cpu', torch.half, non_blocking=True)",
        ["aten::_to_copy read a, write new", "aten::copy_ read new, write new"],
    ),
    ("torch.tensor([1.0], device='cuda')", ["memcpy HtoD write new"]),
]

# Operators after which the host knows that their stream is done, and some after which it does not.
WAITS = [
    ("a.nonzero()", True),
    ("a[mask]", True),
    ("a[mask] = v[:1]", True),
    ("a[mask] = 1.0", False),
    ("a[i]", False),
    ("a.masked_select(mask)", True),
    ("a.unique()", True),
    ("torch.equal(a, b)", True),
    ("a.sum().item()", True),
    ("bool(a.sum())", True),
    ("a.tolist()", True),
    ("a.add(b)", False),
    ("v.repeat_interleave(i)", True),
    ("host.pin_memory().to('cuda', non_blocking=True)", False),
    ("host.to('cuda')", True),
    ("a.to('cpu', non_blocking=True)", False),
    ("print(a)", True),
]

PRELUDE = """\
import torch

side = torch.cuda.Stream()
host = torch.ones(4, 4)
a = torch.empty(4, 4, device="cuda")
b = torch.empty(4, 4, device="cuda")
c = torch.empty(4, 4, device="cuda")
d = torch.empty(4, 4, device="cuda")
long = torch.empty(8, 4, device="cuda")
v = torch.empty(4, device="cuda")
u = torch.empty(4, device="cuda")
w = torch.empty((), device="cuda")
i = torch.empty(4, dtype=torch.long, device="cuda")
mask = torch.empty(4, 4, dtype=torch.bool, device="cuda")


def reset():
    for tensor in (a, b, c, d, v, u, w):
        tensor.set_(tensor.untyped_storage(), 0, tensor.shape, tensor.stride()).fill_(1)
    i.zero_()
    mask.fill_(True)


"""


def build(statements):
    lines = [PRELUDE]
    for number, statement in enumerate(statements):
        lines.append(f"reset()\n{statement}  # (case {number})\n")
    return "".join(lines)


@pytest.fixture(scope="module")
def recording(program):
    # Each case that changes a tensor's shape works on `d`, which is made anew.
    statements = [statement for statement, _ in CASES]
    source = build(statements).replace(
        "reset()\n", "reset()\nd = torch.empty(4, 4, device='cuda')\nd.fill_(1)\n"
    )
    return program.run(source)


@pytest.mark.parametrize(("number", "statement", "expected"), [(n, *case) for n, case in enumerate(CASES)])
def test_accesses(recording, number, statement, expected):
    found = [
        " ".join([event["label"], ", ".join(recording.accesses(event))]).strip()
        for event in recording.at(f"case {number}", "op")
    ]
    assert found == expected


def test_every_case_was_seen(recording):
    assert recording.gaps() == []


@pytest.fixture(scope="module")
def waiting(program):
    return program.run(build([statement for statement, _ in WAITS]))


@pytest.mark.parametrize(("number", "statement", "expected"), [(n, *case) for n, case in enumerate(WAITS)])
def test_waits(waiting, number, statement, expected):
    operations = waiting.at(f"case {number}", "op")
    # torch's pinned allocator looks at its events now and then.
    waits = [
        wait for wait in waiting.at(f"case {number}", "host_wait") if wait["observer"] != "PinnedAllocator"
    ]
    assert operations
    assert [wait["observer"] for wait in waits] == ["Program"] * len(waits)
    assert bool(waits) == expected
    if expected:
        assert waits[-1]["number"] > operations[0]["number"]
