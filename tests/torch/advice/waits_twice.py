"""Waits that others have made needless, and one that only looks so."""

import torch

side = torch.cuda.Stream()
main = torch.cuda.current_stream()
x = torch.zeros(1 << 16, device="cuda")
for _ in range(4):
    x.add_(1)
    side.wait_stream(main)
    with torch.cuda.stream(side):
        side.wait_stream(main)  # advice: [SS703]
        y = x * 2
        # Needed whenever work was issued in between, and that is once: all executions count.
        if _ == 2:
            main.wait_stream(side)
            x.add_(1)
        side.wait_stream(torch.cuda.default_stream())
        y = x * 3
    main.wait_stream(side)
    torch.cuda.synchronize()  # advice: [SS702]
    torch.cuda.synchronize()  # advice: [SS703]
