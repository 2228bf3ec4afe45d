"""Two tasks of one thread change its current stream while the other one waits."""

import asyncio

import torch

streams = [torch.cuda.Stream() for _ in range(2)]
results = []


async def work(number):
    with torch.cuda.stream(streams[number]):
        x = torch.full((256,), float(number), device="cuda")  # (1)
        await asyncio.sleep(0)
        results.append(x.sum())  # error: [SS101] after (1)


async def main():
    await asyncio.gather(work(0), work(1))


asyncio.run(main())
torch.cuda.synchronize()
