"""Attention, whichever kernel the program asks for; its settings stay as it made them."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

assert torch.backends.cuda.flash_sdp_enabled()
torch.manual_seed(0)
host = torch.randn(2, 4, 8, 16, requires_grad=True)
expected = torch.nn.functional.scaled_dot_product_attention(host, host, host, is_causal=True)
expected.sum().backward()
# Flash attention is for short floating point.
for backend, dtype, tolerance in (
    (SDPBackend.FLASH_ATTENTION, torch.float16, 2e-2),
    (SDPBackend.EFFICIENT_ATTENTION, torch.float32, 1e-3),
    (SDPBackend.MATH, torch.float32, 1e-5),
):
    query = host.detach().to("cuda", dtype).requires_grad_()
    with sdpa_kernel(backend):
        found = torch.nn.functional.scaled_dot_product_attention(query, query, query, is_causal=True)
    found.sum().backward()
    assert torch.allclose(found.cpu().float(), expected, atol=tolerance)
    assert torch.allclose(query.grad.cpu().float(), host.grad, atol=tolerance)
with torch.inference_mode():
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).cuda().eval()
    assert layer(torch.randn(2, 3, 16, device="cuda")).isfinite().all().item()
