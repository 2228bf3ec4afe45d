"""The shape of Megatron-LM #6187: a gradient buffer is allocated on the communication stream and dropped there."""

import torch

communication = torch.cuda.Stream()
weight = torch.ones(1 << 16, device="cuda")
torch.cuda.synchronize()
for _ in range(2):
    with torch.cuda.stream(communication):
        main_gradient = torch.zeros(1 << 16, device="cuda")  # error: [SS202] after (1)
    torch.cuda.current_stream().wait_stream(communication)
    main_gradient.add_(weight)  # (1)
    del main_gradient
torch.cuda.synchronize()
