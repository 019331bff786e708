"""Layers of networks that see images: convolutions padded as TensorFlow does it, and normalisations of batches."""

from __future__ import annotations

from fairlap.bench_models.convolution.units import STEADY_SCALE
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import Normal, Uniform

EPSILON = 1e-3  # Keras's, added to the variance


def convolution(
    net: Net,
    name: str,
    image: Value,
    outward: int,
    kernel: tuple[int, int],
    *,
    stride: int = 1,
    groups: int = 1,
    rectified: bool = True,
) -> Value:
    """Pad so that only the stride makes the image smaller; where rows cannot be halved, the end gets the larger half.

    ``rectified`` input has passed a ReLU, which halves its power; the kernel restores it.
    """
    inward, *sizes = image.shape
    after = [-(-size // stride) for size in sizes]
    missing = [
        max(0, (count - 1) * stride + edge - size) for count, edge, size in zip(after, kernel, sizes, strict=True)
    ]
    begins = [each // 2 for each in missing]
    per_pixel = inward // groups * kernel[0] * kernel[1]
    spread = Normal(((2.0 if rectified else 1.0) / per_pixel) ** 0.5)
    weight = net.weight(f"{name}.weight", (outward, inward // groups, *kernel), spread)
    bias = net.weight(f"{name}.bias", (outward,), Normal(0.02))
    net.macs += outward * after[0] * after[1] * per_pixel
    return net.add(
        "Conv",
        image,
        weight,
        bias,
        shape=(outward, *after),
        kernel_shape=list(kernel),
        strides=[stride, stride],
        group=groups,
        pads=[*begins, *(each - begin for each, begin in zip(missing, begins, strict=True))],
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
