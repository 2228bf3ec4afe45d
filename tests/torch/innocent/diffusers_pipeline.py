# @ packages: diffusers, transformers, accelerate
"""A text-to-image pipeline of diffusers with random weights, parts moved to the device when needed."""

import torch
from diffusers import AutoencoderKL, DDIMScheduler, UNet2DConditionModel


def make():
    torch.manual_seed(0)
    unet = UNet2DConditionModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        layers_per_block=1,
        block_out_channels=(16, 32),
        norm_num_groups=8,
        cross_attention_dim=16,
        attention_head_dim=8,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
    )
    decoder = AutoencoderKL(block_out_channels=(16,), norm_num_groups=8, latent_channels=4, sample_size=8)
    return unet.eval(), decoder.eval()


@torch.no_grad()
def paint(device, unet, decoder):
    torch.manual_seed(1)
    scheduler = DDIMScheduler()
    scheduler.set_timesteps(4)
    text, nothing = torch.randn(1, 6, 16), torch.zeros(1, 6, 16)
    context = torch.cat([nothing, text]).to(device)
    latents = torch.randn(1, 4, 8, 8).to(device)
    unet.to(device)
    for step in scheduler.timesteps:
        doubled = scheduler.scale_model_input(torch.cat([latents, latents]), step)
        without, with_text = unet(doubled, step, encoder_hidden_states=context).sample.chunk(2)
        noise = without + 5.0 * (with_text - without)
        latents = scheduler.step(noise, step, latents).prev_sample
    unet.to("cpu")
    decoder.to(device)
    image = decoder.decode(latents / 0.18215).sample
    decoder.to("cpu")
    return image.cpu()


unet, decoder = make()
image = paint("cuda", unet, decoder)
expected = paint("cpu", unet, decoder)
print("losses:", image.square().mean().item())
torch.testing.assert_close(image, expected, rtol=1e-3, atol=1e-4)
