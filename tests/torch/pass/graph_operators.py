"""Operators of many kinds in a graph: a launch computes what they compute without one, from the inputs of the time."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
LAYERS = torch.nn.ModuleDict(
    {
        "conv": torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()),
        "lstm": torch.nn.LSTM(4, 5, batch_first=True),
        "gru": torch.nn.GRU(4, 5),
        "attention": torch.nn.MultiheadAttention(4, 2, batch_first=True),
        "transformer": torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
        "embedding": torch.nn.EmbeddingBag(8, 4, mode="mean"),
    }
).cuda()


def out(x):
    result = torch.empty(0, device="cuda")
    torch.mul(x, 2, out=result)
    return result


def in_place(x):
    y = x.clone()
    y.view(-1)[::2].add_(1).mul_(x.view(-1)[::2])
    y[1] = x[0]
    y.index_add_(0, torch.zeros(1, dtype=torch.long, device="cuda"), x[2:3])
    torch._foreach_add_([y, y], [x, x])
    return y


def backward(x):
    leaf = x.detach().requires_grad_()
    layer = LAYERS["conv"]
    value = F.cross_entropy(layer(leaf).flatten(1), (leaf.sum((1, 2, 3)) > 0).long())
    return value, *torch.autograd.grad(value, [leaf, *layer.parameters()])


CASES = {
    "conv": (LAYERS["conv"], (2, 3, 6, 6)),
    "lstm": (lambda x: LAYERS["lstm"](x)[0], (2, 3, 4)),
    "gru": (lambda x: LAYERS["gru"](x)[0], (2, 3, 4)),
    "attention": (lambda x: LAYERS["attention"](x, x, x)[0], (2, 3, 4)),
    "transformer": (LAYERS["transformer"], (2, 3, 4)),
    "embedding": (lambda x: LAYERS["embedding"](x.argsort(1).clamp(max=7)), (3, 8)),
    "pooling": (lambda x: F.max_pool2d(F.interpolate(x, scale_factor=2), 3, return_indices=True), (1, 2, 5, 5)),
    "selection": (lambda x: (*x.topk(2), *x.sort(0), x.argmax(1), x.max(0).values, x.cumsum(1)), (3, 4)),
    "indices": (lambda x: (x[x.argmax(0)], x.gather(1, x.argsort(1)), x.scatter(0, x.argsort(0), x)), (4, 4)),
    "types": (lambda x: (x.half() + 1, x.long(), x > 0, x.to(torch.complex64) * 1j, x.bfloat16().float()), (3, 4)),
    "complex": (lambda x: (torch.fft.rfft(x).conj() * 2, torch.fft.fft(x).imag.neg()), (3, 8)),
    "matrices": (lambda x: (x @ x.mT, torch.einsum("ij,kj->ik", x, x), torch.linalg.norm(x), x.tril()), (3, 4)),
    "views": (lambda x: (x.t().contiguous(), x.unfold(1, 2, 1) + 0, x.expand(2, 3, 4) * 1, x.diagonal()), (3, 4)),
    "pieces": (lambda x: (*torch.stack([x, x * 2]).unbind(), torch.cat([*x.split(2), x])), (3, 4)),
    "factories": (lambda x: (torch.zeros_like(x), torch.arange(3, device="cuda"), x.new_full((2,), 3)), (3, 4)),
    "statistics": (lambda x: (x.var(0), x.std(), x.softmax(1), x.logsumexp(0), x.median()), (3, 4)),
    "histogram": (lambda x: x.histc(4, -1, 1), (3, 4)),
    "filling": (lambda x: (x.masked_fill(x > 0, 2), x.index_fill(0, x.argmax(0), 3), torch.isin(x, x[0])), (3, 4)),
    "norms": (lambda x: (F.layer_norm(x, (4,)), F.group_norm(x, 2), F.rms_norm(x, (4,))), (3, 4)),
    "out": (out, (3, 4)),
    "in place": (in_place, (3, 4)),
    "backward": (backward, (2, 3, 6, 6)),
}


def tensors(results):
    return results if isinstance(results, tuple) else (results,)


LAYERS.eval()
for name, (function, shape) in CASES.items():
    x = torch.randn(shape, device="cuda")
    tensors(function(x))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = tensors(function(x))
    for _ in range(2):
        x.normal_()
        graph.replay()
        for in_graph, expected in zip(captured, tensors(function(x)), strict=True):
            assert in_graph.stride() == expected.stride(), name
            torch.testing.assert_close(in_graph, expected, msg=lambda text, name=name: f"{name}: {text}")
