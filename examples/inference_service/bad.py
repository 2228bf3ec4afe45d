"""Four stages, each on its stream. The host reads an answer before its copy is done.

streamsan run examples/inference_service/bad.py
"""

import collections

import torch
from torch import nn


class Service:
    """Preprocesses, infers, postprocesses and copies out; requests overlap."""

    def __init__(self, model):
        self.model = model
        self.preprocess = torch.cuda.Stream()
        self.infer = torch.cuda.Stream()
        self.postprocess = torch.cuda.Stream()
        self.copy_out = torch.cuda.Stream()
        self.pending = collections.deque()
        for stream in (self.preprocess, self.infer, self.postprocess, self.copy_out):
            stream.wait_stream(torch.cuda.current_stream())

    def hand_over(self, tensor, source, target):
        """Lets `target` use a tensor that `source` made."""
        target.wait_stream(source)
        tensor.record_stream(target)
        return tensor

    def submit(self, image):
        with torch.cuda.stream(self.preprocess):
            images = image.pin_memory().to("cuda", non_blocking=True).float().div_(255).unsqueeze(0)
        with torch.cuda.stream(self.infer):
            scores = self.model(self.hand_over(images, self.preprocess, self.infer))
        with torch.cuda.stream(self.postprocess):
            best = self.hand_over(scores, self.infer, self.postprocess).softmax(-1).topk(2).values
        with torch.cuda.stream(self.copy_out):
            answer = torch.empty(best.shape, pin_memory=True)
            answer.copy_(self.hand_over(best, self.postprocess, self.copy_out), non_blocking=True)  # (1)
        self.pending.append(answer)

    def answer(self):
        return self.pending.popleft().tolist()  # error: [SS301] after (1)


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
