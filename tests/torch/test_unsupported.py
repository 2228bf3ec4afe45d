"""What the virtual device does not model fails with a sentence, and the report says whose fault that is."""

import subprocess
import sys

import pytest

CASES = [
    ("sparse_coo tensors", "torch.eye(3, device='cuda').to_sparse()"),
    ("sparse_coo tensors", "torch.sparse.mm(torch.eye(4).to_sparse().cuda(), x[:, None])"),
    ("quantized tensors", "torch.quantize_per_tensor(torch.ones(3, device='cuda'), 0.1, 0, torch.qint8)"),
]


@pytest.mark.parametrize(("kind", "code"), CASES, ids=["result", "argument", "quantized"])
def test_says_so(kind, code, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"import torch\nx = torch.ones(4, device='cuda')\n{code}\n")
    command = [sys.executable, "-m", "streamsan", "run", "--device", "virtual", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert done.returncode == 1
    assert f"NotImplementedError: {kind} are not modelled by streamsan's virtual device" in done.stderr
    assert f"may have failed because of streamsan, which does not model {kind} yet" in done.stderr
