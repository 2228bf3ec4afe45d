"""An encoder in evaluation with padded input: torch has a fast path for it; and a CTC loss."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval().to(device)
    inputs, padded = torch.randn(3, 5, 16), torch.arange(5) >= torch.tensor([[4], [5], [2]])
    inputs, padded = inputs.to(device), padded.to(device)
    losses = []
    with torch.inference_mode():
        hidden = encoder(inputs, src_key_padding_mask=padded)
        losses.append(hidden.masked_fill(padded[..., None], 0.0).square().mean().item())
    scores = encoder(inputs).log_softmax(-1).transpose(0, 1)
    targets = torch.tensor([[1, 2], [3, 4], [5, 5]]).to(device)
    lengths, target_lengths = torch.tensor([5, 4, 5]).to(device), torch.tensor([2, 1, 2]).to(device)
    loss = nn.functional.ctc_loss(scores, targets, lengths, target_lengths)
    loss.backward()
    losses += [loss.item(), layer.linear1.weight.abs().mean().item()]
    return losses


losses = run("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, run("cpu"), rtol=1e-4, atol=1e-5)
