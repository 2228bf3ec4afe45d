"""A language model writes token by token with a key-value cache that is updated in place."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Block(nn.Module):
    def __init__(self, size, heads, length):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(size)
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)
        self.register_buffer("keys", torch.zeros(2, heads, length, size // heads))
        self.register_buffer("values", torch.zeros(2, heads, length, size // heads))

    def forward(self, x, position):
        batch, count, size = x.shape
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = (part.view(batch, count, self.heads, -1).transpose(1, 2) for part in (q, k, v))
        self.keys[:, :, position : position + count] = k
        self.values[:, :, position : position + count] = v
        end = position + count
        attended = scaled_dot_product_attention(
            q, self.keys[:, :, :end], self.values[:, :, :end], is_causal=count > 1
        )
        return x + self.out(attended.transpose(1, 2).reshape(batch, count, size))


@torch.inference_mode()
def write(device):
    torch.manual_seed(0)
    embedding, head = nn.Embedding(40, 32).to(device), nn.Linear(32, 40).to(device)
    blocks = [Block(32, 4, 24).to(device) for _ in range(2)]
    tokens = torch.randint(0, 40, (2, 6)).to(device)
    position, scores = 0, []
    current = tokens
    for _ in range(12):
        hidden = embedding(current)
        for block in blocks:
            hidden = block(hidden, position)
        position += current.shape[1]
        logits = head(hidden[:, -1])
        best, candidates = torch.topk(logits, 5)
        scores.append(best.log_softmax(-1)[:, 0].sum().item())
        current = candidates[:, :1]
        tokens = torch.cat([tokens, current], dim=1)
        if (current == 0).all():
            break
    return scores, tokens.tolist()


scores, tokens = write("cuda")
print("losses:", scores)
expected, expected_tokens = write("cpu")
torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-6)
assert tokens == expected_tokens
