"""Attention with grouped heads through each of torch's implementations."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def run(device, kernel):
    torch.manual_seed(0)
    queries = torch.randn(2, 4, 6, 8).to(device).requires_grad_()
    keys, values = torch.randn(2, 2, 6, 8).to(device), torch.randn(2, 2, 6, 8).to(device)
    with sdpa_kernel(kernel):
        result = scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)
    result.square().sum().backward()
    return [result.square().mean().item(), queries.grad.abs().sum().item()]


expected = run("cpu", SDPBackend.MATH)
# On a GPU not all of them take FP32; what a program asks for must not fail here.
for kernel in (
    SDPBackend.MATH,
    [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH],
):
    losses = run("cuda", kernel)
    print("losses:", losses)
    torch.testing.assert_close(losses, expected, rtol=1e-4, atol=1e-5)
