"""A recorded program does what it does without streamsan: the same numbers, errors and status."""

import os
import subprocess
import sys

import pytest
from recorded import run

TRAINING = """\
import torch

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True).cuda()
optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-3)
side = torch.cuda.Stream()
for _ in range(20):
    host = torch.randn(8, 16, 64).pin_memory()
    with torch.cuda.stream(side):
        batch = host.to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    batch.record_stream(torch.cuda.current_stream())
    loss = layer(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""

ERRORS = """\
import torch

for attempt in (
    lambda: torch.empty(1 << 50, device="cuda"),
    lambda: torch.cuda.set_device(torch.cuda.device_count()),
    lambda: torch.ones(3, device="cuda") + torch.ones(4, device="cuda"),
    lambda: torch.cuda.Event().elapsed_time(torch.cuda.Event()),
):
    try:
        attempt()
        print("no error")
    except Exception as error:
        print(type(error).__name__, str(error).split(". ")[0].splitlines()[0])
free, total = torch.cuda.mem_get_info()
print(0 < free <= total, torch.cuda.Event().query(), torch.cuda.current_stream().query())
raise SystemExit(7)
"""


@pytest.mark.parametrize(("source", "status"), [(TRAINING, 0), (ERRORS, 7)], ids=["training", "errors"])
def test_output_and_status(tmp_path, source, status):
    environment = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    done, _ = run(tmp_path, source, environment=environment)
    plain = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )
    assert (plain.returncode, done.returncode) == (status, status), plain.stderr + done.stderr
    assert done.stdout == plain.stdout
