"""Small enough to be quick, large enough that its activations are worth giving back to the kernel."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from fairlap.models.arrays import Arrays
from fairlap.models.spec import LEARNS, Constant, Fill, Normal, Spec, Tensor, Uniform, Weight

IMAGE = 64
CHANNELS = (3, 32, 64, 64)
STRIDES = (1, 2, 2)
CLASSES = 10
FREE_SIZES = {"image": (8, 2048)}  # it averages over all positions


def channels_of(weights: Arrays) -> tuple[int, ...]:
    """Of the weights of this net, or of a narrower one with as many layers."""
    kernels = [weights[f"conv{number}.weight"].shape for number in range(len(STRIDES))]
    return (kernels[0][1], *(kernel[0] for kernel in kernels))


def classes_of(weights: Arrays) -> int:
    return int(weights["head.bias"].shape[0])


def layers(channels: tuple[int, ...], classes: int = CLASSES) -> tuple[Weight, ...]:
    weights: list[Weight] = []
    bias: Fill = Uniform(-0.1, 0.1)
    for number, (inward, outward) in enumerate(pairwise(channels)):
        he = Normal((2 / (inward * 9)) ** 0.5)
        weights += [
            Weight(f"conv{number}.weight", (outward, inward, 3, 3), he),
            Weight(f"conv{number}.bias", (outward,), bias),
        ]
    weights += [
        Weight("head.weight", (classes, channels[-1]), Normal((1 / channels[-1]) ** 0.5)),
        Weight("head.bias", (classes,), bias),
    ]
    return tuple(weights)


SPEC = Spec(
    name="convnet",
    task="image classification",
    inputs=(Tensor("image", ("batch", CHANNELS[0], IMAGE, IMAGE)),),
    outputs=(Tensor("logits", ("batch", CLASSES), Constant(0.0)),),
    weights=layers(CHANNELS),
    parameters=56_970,
    gmacs_per_item=0.031851136,
    published="arithmetic: the sizes of its layers",
    loss="cross_entropy",
    modes=LEARNS,
    default_batch=8,
)


def with_sizes(image: int) -> Spec:
    return replace(SPEC, inputs=(Tensor("image", ("batch", CHANNELS[0], image, image)),), gmacs_per_item=None)
