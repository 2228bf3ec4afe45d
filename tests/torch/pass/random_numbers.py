"""Device generators: seeds, saved states, generators of the program."""

import torch

torch.manual_seed(3)
first = torch.randn(64, device="cuda")
state = torch.cuda.get_rng_state()
second = torch.randn(64, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(second, torch.randn(64, device="cuda"))
assert not torch.equal(first, second)
torch.manual_seed(3)
assert torch.equal(first, torch.randn(64, device="cuda"))

own = torch.Generator("cuda")
own.manual_seed(7)
third = torch.rand(64, device="cuda", generator=own)
own.manual_seed(7)
assert torch.equal(third, torch.rand(64, device="cuda", generator=own))

# The host's own numbers are not touched.
torch.manual_seed(5)
expected = torch.rand(4)
torch.manual_seed(5)
torch.rand(64, device="cuda")
assert torch.equal(expected, torch.rand(4))

dropped = torch.nn.functional.dropout(torch.ones(10_000, device="cuda"), 0.5)
assert 0.4 < (dropped == 0).float().mean().item() < 0.6
assert sorted(torch.randperm(16, device="cuda").tolist()) == list(range(16))
