"""Streams tensors through a GPU: `streamsan.pipeline` beside other ways to do it, in one run.

    python benches/pipeline.py [--gib 4] [--rounds 3]

Every contender gets the same page-locked items and targets, is checked bit by bit, and takes its turn in every
round. The ideal time comes from rates measured in the same process, before and after.
"""

import argparse
import importlib.util
import json
import statistics
import time

import torch

import streamsan

MIB = 1 << 20


def passes(count):
    """A function of ``count`` elementwise passes in place over small whole numbers, so that results are exact."""

    def function(x):
        for _ in range(count // 2):
            x.add_(1.0).mul_(1.0)
        return x

    return function


def serial(function, items, out):
    """One item after the other, page-locked, one stream, a synchronize for each."""
    for item, target in zip(items, out, strict=True):
        target.copy_(function(item.to("cuda", non_blocking=True)), non_blocking=True)
        torch.cuda.synchronize()


def one_stream(function, items, out):
    """Everything on one stream, one synchronize at the end."""
    for item, target in zip(items, out, strict=True):
        target.copy_(function(item.to("cuda", non_blocking=True)), non_blocking=True)
    torch.cuda.synchronize()


def three_slots(function, items, out):
    """The hand-written loop: three streams, three slots, events made once."""
    up, compute, down = (torch.cuda.Stream() for _ in range(3))
    slots = [torch.empty_like(items[0], device="cuda") for _ in range(3)]
    uploaded, computed, downloaded = ([torch.cuda.Event() for _ in slots] for _ in range(3))
    for index, (item, target) in enumerate(zip(items, out, strict=True)):
        turn = index % 3
        if index >= 3:
            up.wait_event(downloaded[turn])
        with torch.cuda.stream(up):
            slots[turn].copy_(item, non_blocking=True)
        uploaded[turn].record(up)
        compute.wait_event(uploaded[turn])
        with torch.cuda.stream(compute):
            function(slots[turn])
        computed[turn].record(compute)
        down.wait_event(computed[turn])
        with torch.cuda.stream(down):
            target.copy_(slots[turn], non_blocking=True)
        downloaded[turn].record(down)
    torch.cuda.synchronize()


def record_stream(function, items, out):
    """Three streams, a new tensor for each item, `record_stream`, and a host that stays four items ahead."""
    up, compute, down = (torch.cuda.Stream() for _ in range(3))
    done = []
    for index, (item, target) in enumerate(zip(items, out, strict=True)):
        if index >= 4:
            done[index - 4].synchronize()
        with torch.cuda.stream(up):
            x = item.to("cuda", non_blocking=True)
        compute.wait_stream(up)
        x.record_stream(compute)
        with torch.cuda.stream(compute):
            function(x)
        down.wait_stream(compute)
        x.record_stream(down)
        with torch.cuda.stream(down):
            target.copy_(x, non_blocking=True)
        event = torch.cuda.Event()
        event.record(down)
        done.append(event)
    torch.cuda.synchronize()


class _Holder(torch.nn.Module):
    """An item as the weight of a module that is called once and writes its result to where it goes."""

    def __init__(self, function, item, target):
        super().__init__()
        self.function, self.target = function, target
        self.weight = torch.nn.Parameter(item, requires_grad=False)

    def forward(self, x):
        self.target.copy_(self.function(self.weight.data), non_blocking=True)
        return x


def accelerate_hooks(function, items, out):
    """The offload hooks of accelerate: each item is the weight of a module that is called once."""
    from accelerate.hooks import AlignDevicesHook, add_hook_to_module, remove_hook_from_module

    for item, target in zip(items, out, strict=True):
        module = _Holder(function, item, target)
        add_hook_to_module(module, AlignDevicesHook(execution_device="cuda:0", offload=True))
        module(None)
        remove_hook_from_module(module)
    torch.cuda.synchronize()


def ramtorch(function, items, out):
    """RamTorch's OffloadModel, window of three: each item is the weight of a chunk. Made before the clock runs."""
    from ramtorch import OffloadModel

    chunks = [_Holder(function, item, target) for item, target in zip(items, out, strict=True)]
    model = OffloadModel(chunks, device="cuda", window=3)
    x = torch.zeros(1, device="cuda")

    def go():
        with torch.no_grad():
            model(x)
        torch.cuda.synchronize()

    return go, model.close


def block_streamer(function, items, out):
    """block-streamer's StreamedModel, two blocks ahead: each item is the weight of a block. Made before."""
    from block_streamer import StreamedModel

    blocks = [_Holder(function, item, target) for item, target in zip(items, out, strict=True)]
    model = StreamedModel(blocks, prefetch_ahead=2)
    x = torch.zeros(1, device="cuda")

    def go():
        with torch.no_grad():
            model(x)
        torch.cuda.synchronize()

    return go, model.close


def managed(function, items, out):
    """streamsan.pipeline."""
    managed.last = streamsan.pipeline(function, items, out=out, progress=False).statistics


CONTENDERS = {
    "streamsan.pipeline": (managed, None),
    "hand-written, 3 slots": (three_slots, None),
    "record_stream, 4 ahead": (record_stream, None),
    "one stream": (one_stream, None),
    "serial": (serial, None),
    "accelerate hooks": (accelerate_hooks, "accelerate"),
    "RamTorch": (ramtorch, "ramtorch"),
    "block-streamer": (block_streamer, "block_streamer"),
}
PREPARED = (ramtorch, block_streamer)
"""Those that are made once for a case: page-locking and set-up are not in their times."""


def installed():
    """The contenders that are there; says which packages are missing."""
    found = {}
    for name, (contender, package) in CONTENDERS.items():
        if package is None or importlib.util.find_spec(package) is not None:
            found[name] = contender
        else:
            print(f"{name} is left out: the package {package} is not installed")
    return found


def timed(action):
    """Seconds of an action, the device idle before and after."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    action()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def rates(size):
    """Bytes a second up, down, and both at once in sum, for copies of ``size`` bytes."""
    count = max(4, (1 << 30) // size)
    host = [torch.empty(size, dtype=torch.uint8, pin_memory=True).fill_(1) for _ in range(2)]
    device = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2)]
    streams = [torch.cuda.Stream() for _ in range(2)]

    def copy(directions):
        for _ in range(count):
            for direction in directions:
                with torch.cuda.stream(streams[direction]):
                    if direction == 0:
                        device[0].copy_(host[0], non_blocking=True)
                    else:
                        host[1].copy_(device[1], non_blocking=True)

    best = {}
    for name, directions in (("up", [0]), ("down", [1]), ("both", [0, 1])):
        times = [timed(lambda directions=directions: copy(directions)) for _ in range(4)]
        best[name] = count * size * len(directions) / min(times[1:])
    return best


def function_seconds(function, item):
    """Seconds of the function for one item: on the device, replayed from a graph, and of the host that calls it."""
    x = item.to("cuda")
    function(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function(x)
    device = timed(lambda: [graph.replay() for _ in range(50)]) / 50
    host = []
    for _ in range(30):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        function(x)
        host.append(time.perf_counter() - begin)
    torch.cuda.synchronize()
    return device, statistics.median(host)


def ideal(link, size, compute, issue, count):
    """Seconds at best: the longest of stages, shared link and host for each item, and fill and drain."""
    up, down = size / link["up"], size / link["down"]
    turn = max(up, down, compute, issue, 2 * size / link["both"])
    return up + compute + down + (count - 1) * turn


def run_case(size, count_of_passes, total, rounds, link, contenders):
    """All contenders in turn on items of one size."""
    count = max(1, total // size)
    elements = size // 4
    items = [torch.full((elements,), float(index % 7), pin_memory=True) for index in range(count)]
    out = [torch.empty(elements, pin_memory=True) for _ in range(count)]
    function = passes(count_of_passes)
    expected = [function(torch.full((4,), float(value))) for value in range(7)]
    compute, issue = function_seconds(function, items[0])
    best = ideal(link, size, compute, issue, count)
    times = {name: [] for name in contenders}
    peaks, wrong, ready, closers = {}, {}, {}, []
    for name, contender in contenders.items():
        if contender in PREPARED:
            try:
                ready[name], close = contender(function, items, out)
                closers.append(close)
            except Exception as error:
                wrong[name] = f"{type(error).__name__}: {error}"
        else:
            ready[name] = lambda contender=contender: contender(function, items, out)
    for turn in range(rounds + 1):
        for name, action in ready.items():
            for target in out:
                target[:4].fill_(-1.0)
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            try:
                seconds = timed(action)
            except Exception as error:
                wrong.setdefault(name, f"{type(error).__name__}: {error}")
                continue
            peaks[name] = max(peaks.get(name, 0), torch.cuda.max_memory_allocated() - before)
            for index in range(0, count, max(1, count // 64)):
                value = expected[index % 7][0]
                if not bool((out[index] == value).all()):
                    wrong[name] = f"item {index} has not the right values"
            if turn > 0:
                times[name].append(seconds)
    for close in closers:
        close()
    result = {
        "mib": size / MIB,
        "passes": count_of_passes,
        "items": count,
        "compute_ms": compute * 1e3,
        "issue_ms": issue * 1e3,
        "ideal_s": best,
        "contenders": {},
    }
    print(
        f"\n{size / MIB:g} MiB x {count}, {count_of_passes} passes ({compute * 1e3:.3f} ms): ideal {best:.4f} s"
    )
    for name, values in times.items():
        if not values:
            result["contenders"][name] = {"right": False, "error": wrong.get(name)}
            print(f"  {name:24} did not run: {wrong.get(name)}", flush=True)
            continue
        middle = statistics.median(values)
        result["contenders"][name] = {
            "median_s": middle,
            "min_s": min(values),
            "max_s": max(values),
            "of_ideal": best / middle,
            "us_an_item": middle / count * 1e6,
            "peak_mib": peaks[name] / MIB,
            "right": name not in wrong,
        }
        print(
            f"  {name:24} {middle:8.4f} s ({min(values):.4f} to {max(values):.4f})  {best / middle:6.1%} of ideal"
            f"  {middle / count * 1e6:9.1f} us an item  peak {peaks[name] / MIB:8.1f} MiB"
            f"{'  WRONG: ' + wrong[name] if name in wrong else ''}",
            flush=True,
        )
    return result


def main():
    """Runs all cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=4.0, help="bytes of a case, in GiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--items", type=int, default=2000, help="items of a case at most")
    parser.add_argument("--mib", type=float, nargs="+", default=[1 / 16, 1, 16, 64], help="sizes of an item")
    parser.add_argument("--passes", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args()
    print(torch.__version__, torch.cuda.get_device_name(0), flush=True)
    contenders = installed()
    total = int(options.gib * (1 << 30))
    cases = []
    for mib in options.mib:
        size = int(mib * MIB)
        link = rates(size)
        print(f"\nlink at {mib:g} MiB: up {link['up'] / 1e9:.1f}, down {link['down'] / 1e9:.1f}, ", end="")
        print(f"both {link['both'] / 1e9:.1f} GB/s", flush=True)
        for count in options.passes:
            share = min(total, options.items * size)
            cases.append(run_case(size, count, share, options.rounds, link, contenders) | {"link": link})
    if options.json:
        with open(options.json, "w") as file:
            json.dump(cases, file, indent=1)


if __name__ == "__main__":
    main()
