"""Ten steps of DDIM from noise to a latent image: each finds the noise with the network of ``unet`` and takes it away.

Stable Diffusion's noise: a thousand times whose shares grow with the square of a line.
"""

from __future__ import annotations

from dataclasses import replace

from fairlap.bench_models.graphs.net import Net, Value
from fairlap.bench_models.unet.network import LATENT, TEXT_WIDTH, TOKENS, features_at, noise
from fairlap.models.spec import BATCH, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
STEPS = 10
TIMES, FIRST, LAST = 1000, 0.00085, 0.012


def kept_shares() -> list[float]:
    """Compute the share of the image that is left at every time."""
    found, left = [], 1.0
    for time in range(TIMES):
        left *= 1 - (FIRST**0.5 + (LAST**0.5 - FIRST**0.5) * time / (TIMES - 1)) ** 2
        found.append(left)
    return found


def _step(net: Net, latent: Value, time: int, kept: float, kept_after: float) -> Value:
    found = noise(net, latent, features_at(net, time), net.input("text"))
    image = net.sum(latent, net.product(found, net.number(-((1 - kept) ** 0.5))))
    image = net.product(image, net.number((kept_after / kept) ** 0.5))
    return net.sum(image, net.product(found, net.number((1 - kept_after) ** 0.5)))


def _net() -> Net:
    net = Net(Tensor("latent", (BATCH, *LATENT)), Tensor("text", (BATCH, TOKENS, TEXT_WIDTH)))
    kept, apart = kept_shares(), TIMES // STEPS
    latent = net.input("latent")
    for time in reversed(range(1, TIMES, apart)):
        after = time - apart
        latent = _step(net, latent, time, kept[time], kept[after] if after >= 0 else 1.0)
    net.output(latent, "image")
    return net


NET = _net()
SPEC = NET.spec(
    "ddim",
    task="image generation, ten steps",
    published="DDIM and latent diffusion (loop and layers, in small sizes); arithmetic",
    parameters=909_988,
    modes=("infer",),
)
