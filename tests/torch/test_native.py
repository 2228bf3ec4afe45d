"""Tensors are read through torch's C interface where it says the same as Python."""

import test_observe

BY_PYTHON = "_core.read_tensors_natively = lambda examples: False"
TENSORS = """\
import os
from streamsan import _core
{how}
import torch
from streamsan.torch.native import read_natively

complaints = os.open("complaints.txt", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.dup2(complaints, 2)
print(read_natively())

class Own(torch.Tensor):
    pass

x = torch.randn(4, 6, 8, device="cuda")
for view in (
    x, x.transpose(0, 2), x[1:, ::2], x[:, :, 3], x.expand(2, 4, 6, 8), x[0, 0, 0], x[0:0], x.flip(0),
    x.unfold(2, 3, 1), x.view(torch.int32), x.permute(2, 0, 1)[::3], x.as_subclass(Own),
    torch.nn.Parameter(x[2]), x.bool()[:, 1], x.to(torch.complex64).real, x.half()[::2],
):
    view + 1
pinned = torch.ones(4, 4, pin_memory=True)
pinned.t().add_(1)
pinned[1:, ::2].mul_(2)
x[0, :4, :4].copy_(pinned)
sparse = torch.eye(4).to_sparse()
sparse + sparse
nested = torch.nested.nested_tensor([pinned, pinned[1:]])
nested.transpose(1, 2) * 2
torch.empty(3, device="meta") + 1
print(os.pread(complaints, 1000, 0).decode())
"""


def test_the_same_is_recorded(program):
    natively = program.run(TENSORS.format(how="pass"))
    by_python = program.run(TENSORS.format(how=BY_PYTHON))
    assert natively.stdout.split()[0] == "True"
    assert "aoti_torch" not in natively.stdout, "torch complains to the program's standard error"
    assert by_python.stdout.split()[0] == "False"
    ours, theirs = ([test_observe.shown(event) for event in run.events] for run in (natively, by_python))
    assert sum(len(event["accesses"]) for event in ours) > 40
    assert ours == theirs
