"""Whether the memory bound of a pipeline holds over many items, also where the host runs far ahead.

python benches/bound.py [--items 10000]
"""

import argparse

import torch

import streamsan

MIB = 1 << 20


def main():
    """Prints the peak of device and page-locked memory for six workloads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=10_000)
    count = parser.parse_args().items
    print(torch.__version__, torch.cuda.get_device_name(0))
    pinned = torch.ones(MIB // 4, pin_memory=True)
    pageable = torch.ones(MIB // 4)
    target = torch.empty(MIB // 4, pin_memory=True)
    small, small_target = torch.ones(MIB // 64, pin_memory=True), torch.empty(MIB // 64, pin_memory=True)
    huge = torch.ones(1 << 16, 1 << 12)

    def heavy(x):
        for _ in range(40):
            x.mul_(1.0)
        return x

    def ignore(index, value):
        pass

    for name, function, source, out, times in (
        ("in place, page-locked", lambda x: x.add_(1.0), pinned, [target] * count, count),
        ("new results", lambda x: x + 1.0, pinned, [target] * count, count),
        ("function far behind the host", heavy, pinned, [target] * count, count),
        ("pageable items and results", lambda x: x + 1.0, pageable, ignore, count),
        ("64 KiB, packed, new results", lambda x: x + 1.0, small, [small_target] * count, count),
        ("one of 1 GiB, pageable, cut", lambda x: x.add_(1.0), huge, ignore, 1),
    ):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        free, _ = torch.cuda.mem_get_info()
        before = torch.cuda.host_memory_stats()["allocated_bytes.current"]
        statistics = streamsan.pipeline(
            function,
            (source for _ in range(times)),
            out=out,
            memory=4 * MIB,
            progress=False,
            chunk=source is huge,
        ).statistics
        peak, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        driver = free - torch.cuda.mem_get_info()[0]
        locked = torch.cuda.host_memory_stats()["allocated_bytes.peak"] - before
        print(
            f"{name:30} {statistics.items} items in {statistics.seconds:.2f} s, slots "
            f"{statistics.device_bytes / MIB:.1f} MiB; peak allocated {peak / MIB:.1f}, reserved "
            f"{reserved / MIB:.1f}, driver {driver / MIB:.1f} MiB; page-locked by the pipeline "
            f"{statistics.pinned_bytes / MIB:.1f} MiB (torch's peak {locked / MIB:.1f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
