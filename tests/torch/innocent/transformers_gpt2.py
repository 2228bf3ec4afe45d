# @ packages: transformers
"""GPT-2 of transformers, built from a configuration: trained, then generates."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def train(device):
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0,
        pad_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        tokens = torch.randint(1, 64, (2, 16)).to(device)
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    written = model.generate(tokens[:, :4], max_new_tokens=8, do_sample=False)
    return losses, written.tolist()


losses, written = train("cuda")
print("losses:", losses, "written:", written)
expected, other = train("cpu")
torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-6)
assert written == other
