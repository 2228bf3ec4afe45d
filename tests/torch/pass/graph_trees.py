"""Graphs as `torch.compile(mode="reduce-overhead")` makes them, of two functions that share a pool.

Inputs are in the pool, are freed inside the capture, and are filled before each launch. Results live in the pool until the
next step. The second function takes a result of the first one, and both are used on another stream too.
"""

import torch
from torch._guards import CompileId
from torch._inductor.cudagraph_trees import cudagraphify_impl

WIDTH = 1 << 16


def add_and_clip(inputs):
    x, weight = inputs
    inputs.clear()
    total = x + weight
    del x
    return [torch.relu(total) * 2, total.sum()]


def square(inputs):
    (x,) = inputs
    inputs.clear()
    y = x * x
    del x
    return [y + 1]


def graphed(function, inputs, static, results, number):
    compile_id = CompileId(frame_id=number, frame_compile_id=0)
    return cudagraphify_impl(
        function,
        inputs,
        static,
        device_index=0,
        is_backward=False,
        is_inference=True,
        stack_traces=[None] * results,
        compile_id=compile_id,
    )


weight = torch.ones(WIDTH, device="cuda")
load, read = torch.cuda.Stream(), torch.cuda.Stream()
main = torch.cuda.current_stream()
first = second = None
for step in range(6):
    torch.compiler.cudagraph_mark_step_begin()
    load.wait_stream(main)
    with torch.cuda.stream(load):
        x = torch.full((WIDTH,), float(step), device="cuda")
    main.wait_stream(load)
    if first is None:
        first = graphed(add_and_clip, [x, weight], [1], 2, 0)
    y, total = first([x, weight])
    x.record_stream(main)
    del x
    if second is None:
        second = graphed(square, [y], [], 1, 1)
    (z,) = second([y])
    read.wait_stream(main)
    with torch.cuda.stream(read):
        seen = z[:2].clone()
    main.wait_stream(read)
    assert seen.tolist() == [(2 * (step + 1)) ** 2 + 1] * 2
    assert total.item() == WIDTH * (step + 1)
    del y, z, total
