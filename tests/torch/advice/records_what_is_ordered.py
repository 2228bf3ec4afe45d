"""`record_stream` where the owner waits before the free, and where it does not."""

import torch

side = torch.cuda.Stream()
main = torch.cuda.current_stream()
for _ in range(4):
    x = torch.ones(1 << 16, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        total = x.sum()
        x.record_stream(side)  # advice: [SS707]
    main.wait_stream(side)
    del x

for _ in range(4):
    x = torch.ones(1 << 16, device="cuda")
    side.wait_stream(main)
    with torch.cuda.stream(side):
        total = x.sum()
        x.record_stream(side)
    del x
    main.wait_stream(side)
