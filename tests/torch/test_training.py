"""Training on the virtual device gives the numbers of plain CPU training, and no finding."""

import pytest
from device import DEVICE

SOURCE = """\
import sys

import torch


def mlp():
    return torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 2)
    )


def transformer():
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def convolution():
    return torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten())


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.LSTM(4, 5, 2)
        self.outer = torch.nn.GRU(5, 3)

    def forward(self, x):
        return self.outer(self.inner(x)[0])[0]


make, shape = {
    "mlp": (mlp, (5, 8)),
    "transformer": (transformer, (2, 7, 16)),
    "convolution": (convolution, (2, 2, 9, 9)),
    "recurrent": (Recurrent, (6, 3, 4)),
}[sys.argv[1]]
options = {"default": {}, "foreach": {"foreach": True}, "single": {"foreach": False}, "fused": {"fused": True}}[sys.argv[2]]

torch.manual_seed(1)
expected_model = make()
model = make()
model.load_state_dict(expected_model.state_dict())
model = model.cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, **options)
expected_optimizer = torch.optim.AdamW(expected_model.parameters(), lr=1e-2, **options)
side = torch.cuda.Stream()
for step in range(4):
    batch = torch.randn(*shape)
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.default_stream())
        loss = model(batch.cuda()).square().mean()
        loss.backward()
    torch.cuda.current_stream().wait_stream(side)
    optimizer.step()
    optimizer.zero_grad()
    expected = expected_model(batch).square().mean()
    expected.backward()
    expected_optimizer.step()
    expected_optimizer.zero_grad()
    print(loss.item(), expected.item())
"""


@pytest.mark.parametrize("optimizer", ["default", "foreach", "single", "fused"])
@pytest.mark.parametrize("model", ["mlp", "transformer"])
def test_losses_are_those_of_the_cpu(program, model, optimizer):
    check(program, model, optimizer)


@pytest.mark.parametrize("model", ["convolution", "recurrent"])
def test_other_layers(program, model):
    check(program, model, "default")


def check(program, model, optimizer):
    file = program.folder / "training.py"
    file.write_text(SOURCE)
    # Status 0: the program succeeded and nothing was found.
    recording = program.run(SOURCE, check=True, file=file, arguments=[model, optimizer])
    losses = [tuple(map(float, line.split())) for line in recording.stdout.splitlines()]
    assert len(losses) == 4 and len(set(losses)) == 4
    # The kernels of a GPU add up in another order.
    tolerance = 1e-6 if DEVICE == "virtual" else 1e-4
    for loss, expected in losses:
        assert loss == pytest.approx(expected, rel=tolerance)
    assert recording.gaps() == []
    engine = [event for event in recording.events if event["kind"] == "op" and event["thread"] != 0]
    assert engine and all(event["forward_stack"] for event in engine if "add" not in event["label"])
