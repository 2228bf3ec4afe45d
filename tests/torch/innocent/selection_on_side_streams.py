"""Sort, topk, nonzero, unique and boolean masks on a side stream: boxes of a detector filtered."""

import torch


def detect(device, side):
    torch.manual_seed(0)
    sums = []
    for _ in range(4):
        corners = torch.rand(40, 2).to(device)
        boxes = torch.cat([corners, corners + torch.rand(40, 2).to(device)], dim=1)
        scores, labels = torch.rand(40).to(device), torch.randint(0, 5, (40,)).to(device)
        if side:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            best, order = scores.sort(descending=True)
            kept = order[best > 0.3]
            top, places = scores[kept].topk(min(8, len(kept)))
            chosen = boxes[kept[places]]
            present, counts = torch.unique(labels[kept], return_counts=True)
            large = torch.nonzero((chosen[:, 2:] - chosen[:, :2]).prod(1) > 0.1).flatten()
            chosen[chosen > 1.5] = 1.5
            selected = torch.masked_select(top, top > 0.5)
            running = top.cumsum(0)[-1] + torch.where(chosen > 1, chosen, 0.0).sum()
        if side:
            torch.cuda.current_stream().wait_stream(side)
        total = running + selected.sum() + counts.sum() + large.numel() + present.float().mean()
        sums.append(total.item())
        if side:
            side.wait_stream(torch.cuda.current_stream())
    return sums


losses = detect("cuda", torch.cuda.Stream())
print("losses:", losses)
torch.testing.assert_close(losses, detect("cpu", None), rtol=1e-4, atol=1e-6)
