"""torch.func: gradients per sample, a Jacobian, an ensemble under vmap, a Hessian-vector product."""

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, jacrev, jvp, stack_module_state, vmap


def run(device):
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)).to(device) for _ in range(3)]
    inputs, targets = torch.randn(5, 6).to(device), torch.randn(5, 1).to(device)
    weights = {name: p.detach() for name, p in models[0].named_parameters()}

    def loss(weights, sample, target):
        return (functional_call(models[0], weights, (sample,)) - target).square().mean()

    results = []
    per_sample, values = vmap(grad_and_value(loss), in_dims=(None, 0, 0))(weights, inputs, targets)
    results += [values.sum(), sum(g.norm() for g in per_sample.values())]
    for _ in range(3):
        gradients = grad(loss)(weights, inputs, targets)
        weights = {name: weights[name] - 0.1 * gradients[name] for name in weights}
        results.append(loss(weights, inputs, targets))
    parameters, buffers = stack_module_state(models)
    outputs = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(
        parameters, buffers, inputs
    )
    results.append(outputs.std(0).sum())
    results.append(jacrev(lambda x: torch.tanh(models[1](x)))(inputs[0]).norm())
    gradient = grad(lambda x: models[2](x).square().sum())
    results.append(jvp(gradient, (inputs,), (torch.ones_like(inputs),))[1].norm())
    return [result.item() for result in results]


losses = run("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, run("cpu"), rtol=1e-4, atol=1e-5)
