"""The same four stages by declaration: what each comes after; no wait between streams is written by hand.

streamsan run examples/inference_service/managed.py
"""

import collections

import torch
from torch import nn

import streamsan


class Service:
    """Preprocesses, infers, postprocesses and copies out; requests overlap."""

    def __init__(self, model):
        self.model = model
        self.streams = streamsan.StreamGraph(
            {
                "preprocess": [],
                "infer": ["preprocess"],
                "postprocess": ["infer"],
                "copy out": ["postprocess"],
            }
        )
        self.pending = collections.deque()

    def submit(self, image):
        images = self.streams["preprocess"].run(self.upload, image.pin_memory())
        scores = self.streams["infer"].run(self.model, images)
        best = self.streams["postprocess"].run(lambda x: x.softmax(-1).topk(2).values, scores)
        self.pending.append(self.streams["copy out"].run(self.download, best))

    def answer(self):
        answer, copied = self.pending.popleft()
        copied.synchronize()
        return answer.tolist()

    @staticmethod
    def upload(image):
        return image.to("cuda", non_blocking=True).float().div_(255).unsqueeze(0)

    @staticmethod
    def download(best):
        answer = torch.empty(best.shape, pin_memory=True)
        answer.copy_(best, non_blocking=True)
        return answer, torch.cuda.current_stream().record_event()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 49, 5)).cuda()
    service = Service(model.eval())
    with torch.inference_mode():
        for _ in range(3):
            service.submit(torch.randint(0, 256, (3, 16, 16), dtype=torch.uint8))
        for _ in range(3):
            print("answer:", service.answer())


if __name__ == "__main__":
    main()
