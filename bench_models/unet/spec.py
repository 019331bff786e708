"""One look of a small latent-diffusion U-Net: the noise in a latent image, at a time and under a text."""

from __future__ import annotations

from fairlap.bench_models.graphs.net import Net
from fairlap.bench_models.unet.network import LATENT, TEXT_WIDTH, TOKENS, noise, time_features
from fairlap.models.spec import BATCH, Tensor, Uniform

IMPLEMENTED_IN = "fairlap.bench_models.graphs"


def _net() -> Net:
    net = Net(
        Tensor("latent", (BATCH, *LATENT)),
        Tensor("time", (BATCH, 1), Uniform(0.0, 1000.0)),
        Tensor("text", (BATCH, TOKENS, TEXT_WIDTH)),
    )
    features = time_features(net, net.input("time"))
    net.output(noise(net, net.input("latent"), features, net.input("text")), "noise")
    return net


NET = _net()
SPEC = NET.spec(
    "unet",
    task="image generation, one look",
    published="Latent diffusion (layers, in small sizes); arithmetic",
    parameters=909_988,
    loss="square_error",
)
