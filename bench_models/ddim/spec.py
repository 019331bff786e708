"""Ten steps of DDIM from noise to a latent image: each finds the noise with the network of ``unet`` and takes it away.

Stable Diffusion's noise: a thousand times whose shares grow with the square of a line. As ONNX and in PyTorch the steps
are written out one after the other; JAX and TensorFlow have a loop.
"""

from __future__ import annotations

from typing import NamedTuple

from fairlap.bench_models.graphs.net import Net, Sized, Value
from fairlap.bench_models.unet.network import FEATURES, LATENT, TEXT_WIDTH, TOKENS, features_at, noise
from fairlap.models.spec import BATCH, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
STEPS = 10
TIMES, FIRST, LAST = 1000, 0.00085, 0.012
_PUBLISHED = "DDIM and latent diffusion (loop and layers, in small sizes); arithmetic"


class Step(NamedTuple):
    """The next latent image is ``of_latent`` times the last one and ``of_noise`` times the noise in it."""

    features: list[float]  # of the time
    of_latent: float
    of_noise: float


def kept_shares() -> list[float]:
    """Compute the share of the image that is left at every time."""
    found, left = [], 1.0
    for time in range(TIMES):
        left *= 1 - (FIRST**0.5 + (LAST**0.5 - FIRST**0.5) * time / (TIMES - 1)) ** 2
        found.append(left)
    return found


def _steps() -> list[Step]:
    kept, apart, found = kept_shares(), TIMES // STEPS, []
    for time in reversed(range(1, TIMES, apart)):
        now, then = kept[time], kept[time - apart] if time > apart else 1.0
        of_latent = (then / now) ** 0.5
        found.append(Step(features_at(time), of_latent, (1 - then) ** 0.5 - of_latent * (1 - now) ** 0.5))
    return found


def _next(net: Net, latent: Value, step: Step) -> Value:
    found = noise(net, latent, net.constant((1, FEATURES), lambda: [step.features]), net.input("text"))
    moved = net.product(found, net.number(step.of_noise))
    return net.sum(net.product(latent, net.number(step.of_latent)), moved)


def _whole() -> Net:
    net = Net(Tensor("latent", (BATCH, *LATENT)), Tensor("text", (BATCH, TOKENS, TEXT_WIDTH)))
    latent = net.input("latent")
    for step in SCHEDULE:
        latent = _next(net, latent, step)
    net.output(latent, "image")
    return net


def _look() -> Net:
    net = Net(
        Tensor("latent", (BATCH, *LATENT)),
        Tensor("features", (BATCH, FEATURES)),
        Tensor("text", (BATCH, TOKENS, TEXT_WIDTH)),
    )
    net.output(noise(net, net.input("latent"), net.input("features"), net.input("text")), "noise")
    return net


SCHEDULE = _steps()
NET = _whole()
SPEC = NET.spec(
    "ddim",
    task="image generation, ten steps",
    published=_PUBLISHED,
    parameters=909_988,
    modes=("infer",),
)


def look() -> Sized:
    """Make the network of one step, for loops; its weights have the same names."""
    net = _look()
    return Sized(net, net.spec("ddim_look", task=SPEC.task, published=_PUBLISHED, parameters=SPEC.parameters))
