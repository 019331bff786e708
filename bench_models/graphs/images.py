"""Layers of networks that see images: convolutions padded as TensorFlow does it, and normalisations of batches."""

from __future__ import annotations

import math
from typing import Any

from fairlap.bench_models.convolution.units import STEADY_SCALE
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import Normal, Uniform

EPSILON = 1e-3  # Keras's, added to the variance

WHOLE, RECTIFIED, SWISHED = 1.0, 2.0, 2.7
"""What a kernel multiplies the power of its input by: a ReLU halves it, and a SiLU leaves some 0.37 of it."""


def convolution(
    net: Net,
    name: str,
    image: Value,
    outward: int,
    kernel: tuple[int, ...],
    *,
    stride: int = 1,
    groups: int = 1,
    power: float = RECTIFIED,
    bias: bool = True,
    symmetric: bool = False,
) -> Value:
    """Convolve an image or, with a kernel of three sides, a volume.

    It is padded so that only the stride makes it smaller; where rows cannot be halved, the end gets the larger half.
    ``symmetric`` padding is half of the kernel on each side instead, as PyTorch's networks have it.
    """
    inward, *sizes = image.shape
    after = [-(-size // stride) for size in sizes]
    missing = [
        max(0, (count - 1) * stride + edge - size) for count, edge, size in zip(after, kernel, sizes, strict=True)
    ]
    begins = [edge // 2 for edge in kernel] if symmetric else [each // 2 for each in missing]
    ends = begins if symmetric else [each - begin for each, begin in zip(missing, begins, strict=True)]
    per_pixel = inward // groups * math.prod(kernel)
    parts = [net.weight(f"{name}.weight", (outward, inward // groups, *kernel), Normal((power / per_pixel) ** 0.5))]
    parts += [net.weight(f"{name}.bias", (outward,), Normal(0.02))] if bias else []
    net.macs += outward * math.prod(after) * per_pixel
    return net.add(
        "Conv",
        image,
        *parts,
        shape=(outward, *after),
        kernel_shape=list(kernel),
        strides=[stride] * len(kernel),
        group=groups,
        pads=[*begins, *ends],
    )


def normalised(net: Net, name: str, value: Value) -> Value:
    """Normalise the channels, the first axis of an item, by their moving averages."""
    features = (value.shape[0],)
    parts = (
        net.weight(f"{name}.weight", features, STEADY_SCALE),
        net.weight(f"{name}.bias", features, Normal(0.02)),
        net.weight(f"{name}.running_mean", features, Normal(0.02), trained=False),
        net.weight(f"{name}.running_var", features, Uniform(0.5, 1.5), trained=False),
    )
    return net.add("BatchNormalization", value, *parts, shape=value.shape, epsilon=EPSILON)


def activated(net: Net, name: str, image: Value) -> Value:
    """Normalise and rectify."""
    return net.elementwise("Relu", normalised(net, name, image))


def swish(net: Net, value: Value) -> Value:
    return net.product(value, net.elementwise("Sigmoid", value))


def doubled(net: Net, image: Value) -> Value:
    """Make each pixel four."""
    channels, height, width = image.shape
    scales = net.constant((4,), lambda: (1, 1, 2, 2))
    nowhere = Value("", ())
    shape = (channels, 2 * height, 2 * width)
    how: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return net.add("Resize", image, nowhere, scales, shape=shape, **how)


def joined(net: Net, *images: Value) -> Value:
    """Put their channels one after the other."""
    channels = sum(each.shape[0] for each in images)
    return net.add("Concat", *images, shape=(channels, *images[0].shape[1:]), axis=1)


def separable(net: Net, name: str, image: Value, outward: int, *, stride: int = 1) -> Value:
    """Convolve each channel alone by 3x3, then mix them; each half is normalised and rectified."""
    inward = image.shape[0]
    hidden = convolution(net, f"{name}.each", image, inward, (3, 3), stride=stride, groups=inward)
    hidden = convolution(net, f"{name}.mixed", activated(net, f"{name}.norm1", hidden), outward, (1, 1))
    return activated(net, f"{name}.norm2", hidden)


def means_of_channels(net: Net, image: Value) -> Value:
    channels = image.shape[0]
    averaged = net.add("GlobalAveragePool", image, shape=(channels, 1, 1))
    return net.add("Flatten", averaged, shape=(channels,))
