# @ packages: timm
"""A vision transformer and a residual network of timm, built from their configuration."""

import timm
import torch

# A GPU would round convolutions to fewer digits than a CPU.
torch.backends.cudnn.allow_tf32 = False


def train(device, name, settings):
    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=5, **settings).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    losses = []
    for _ in range(2):
        images, labels = torch.randn(4, 3, 32, 32).to(device), torch.randint(0, 5, (4,)).to(device)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


models = {
    "vit_tiny_patch16_224": {"img_size": 32, "depth": 2},
    "resnet10t": {},
}
for name, settings in models.items():
    losses = train("cuda", name, settings)
    print(name, "losses:", losses)
    torch.testing.assert_close(losses, train("cpu", name, settings), rtol=1e-4, atol=1e-6)
