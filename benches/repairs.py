"""What three repairs of one pipeline cost: an event wait, a stream synchronize, a device synchronize.

    python benches/repairs.py

Uploads and a function on two streams, double buffered. Without a wait the function reads what may not have
arrived; each repair makes it right.
"""

import statistics
import time

import torch

MIB = 1 << 20


def run(items, passes, repair):
    """Seconds for all items with one repair, and whether every result was right."""
    up, compute = torch.cuda.Stream(), torch.cuda.Stream()
    slots = [torch.empty_like(items[0], device="cuda") for _ in range(2)]
    sums = torch.zeros(len(items), device="cuda")
    uploaded, used = ([torch.cuda.Event() for _ in slots] for _ in range(2))
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for index, item in enumerate(items):
        turn = index % 2
        if index >= 2:
            up.wait_event(used[turn])
        with torch.cuda.stream(up):
            slots[turn].copy_(item, non_blocking=True)
            uploaded[turn].record(up)
        if repair == "event wait":
            compute.wait_event(uploaded[turn])
        elif repair == "stream synchronize":
            up.synchronize()
        elif repair == "device synchronize":
            torch.cuda.synchronize()
        with torch.cuda.stream(compute):
            for _ in range(passes):
                slots[turn].mul_(1.0)
            sums[index] = slots[turn][-1]
            used[turn].record(compute)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    return seconds, sums.tolist() == [float(item[-1]) for item in items]


def main():
    """All repairs in turn, three sizes."""
    print(torch.__version__, torch.cuda.get_device_name(0))
    repairs = ["none", "event wait", "stream synchronize", "device synchronize"]
    for mib, passes in ((1, 4), (16, 30), (64, 30)):
        count = max(32, 2048 // mib)
        items = [torch.full((mib * MIB // 4,), float(i % 97), pin_memory=True) for i in range(count)]
        times = {repair: [] for repair in repairs}
        right = dict.fromkeys(repairs, True)
        for turn in range(6):
            for repair in repairs:
                seconds, good = run(items, passes, repair)
                right[repair] &= good
                if turn > 0:
                    times[repair].append(seconds)
        base = statistics.median(times["event wait"])
        print(f"{mib} MiB x {count}, {passes} passes")
        for repair in repairs:
            middle = statistics.median(times[repair])
            print(
                f"  {repair:20} {middle:.4f} s  {middle / base:5.2f} x event wait  "
                f"{middle / count * 1e6:8.1f} us an item  {'right' if right[repair] else 'WRONG RESULTS'}"
            )


if __name__ == "__main__":
    main()
