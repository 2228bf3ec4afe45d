"""`torch.compile` does not stumble over the layer: no warning, and what the program prints without it."""

import os
import subprocess
import sys

PROGRAM = """
import copy
import sys
import threading

import torch

assert "torch._dynamo" not in sys.modules  # importing it takes a second
device = sys.argv[1]


@torch.compile(backend="eager", fullgraph=True)
def whole(x):
    return (x * 2).sum()


@torch.compile(backend="eager")
def broken_up(x):
    on_host = (x.cpu() + 1).numpy()
    address = x.data_ptr()
    return (x + 1).sum().item(), torch.from_numpy(on_host).tolist(), address != 0


@torch.compile(backend="eager")
def on_host(x):
    kept = torch.zeros(3)
    kept.copy_(x[:3])
    kept.resize_(2)
    return copy.deepcopy(kept).tolist()


def in_thread():
    print(broken_up(torch.full((4,), 3.0, device=device)))


print(whole(torch.ones(4, device=device)).item())
print(broken_up(torch.ones(4, device=device)))
print(on_host(torch.ones(4, device=device)))
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).to(device)
torch.nn.init.ones_(model[0].weight)
compiled = torch.compile(model, backend="eager")
compiled(torch.ones(4, device=device)).sum().backward()
print(model[0].weight.grad.tolist())
"""

# torch's own, where Python is 3.13.0.
OF_TORCH = "Guards may run slower on Python 3.13.0"


def test_prints_the_same_without_a_warning(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    streamsan = ["-m", "streamsan", "run", "--device", "virtual", "--no-check", "-o", "compile.sstrace"]

    def printed(*arguments):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "PYTHONWARNINGS": f"error,ignore:{OF_TORCH}:RuntimeWarning"},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout, done.stderr

    plain, plain_errors = printed(str(script), "cpu")
    watched, errors = printed(*streamsan, str(script), "cuda")
    assert plain.count("\n") == 5
    assert watched == plain
    assert "Dynamo" not in errors + plain_errors
