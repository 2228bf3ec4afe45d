"""Each part of a task chooses its stream again after it has waited."""

import asyncio

import torch

streams = [torch.cuda.Stream() for _ in range(2)]
results = []


async def work(number):
    with torch.cuda.stream(streams[number]):
        x = torch.full((256,), float(number), device="cuda")
    await asyncio.sleep(0)
    with torch.cuda.stream(streams[number]):
        results.append(x.sum())


async def main():
    await asyncio.gather(work(0), work(1))


asyncio.run(main())
torch.cuda.synchronize()
