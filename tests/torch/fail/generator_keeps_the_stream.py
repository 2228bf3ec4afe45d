"""The generator's stream stays current in the loop's body; the last value is used after the loop."""

import torch

side = torch.cuda.Stream()


def batches(count):
    with torch.cuda.stream(side):
        for step in range(count):
            yield torch.full((256,), float(step), device="cuda")


total = torch.zeros(256, device="cuda")
torch.cuda.synchronize()
for batch in batches(3):
    total += batch  # (1)
print(total.sum().item())  # error: [SS101] after (1)
