"""Layers of a latent-diffusion U-Net: two sizes of a latent image, attention to itself and to a text at the smaller.

Every layer adds to a net; one that is called again with the same name shares its weights, so that steps of a loop do.
"""

from __future__ import annotations

import math

from fairlap.bench_models.graphs.attention import DECISIVE, MODEST, Heads, attention, layer_norm
from fairlap.bench_models.graphs.images import SWISHED, WHOLE, convolution, doubled, joined, swish
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import Normal, Uniform

LATENT = (4, 16, 16)
TOKENS, TEXT_WIDTH = 16, 64
WIDTHS = (32, 64)
TIME_WIDTH = 4 * WIDTHS[0]
HALF = WIDTHS[0] // 2
FEATURES = 2 * HALF
SPEEDS = [math.exp(-math.log(10_000) * place / HALF) for place in range(HALF)]
GROUPS = 16
HEADS = Heads(queries=4, keys=4, size=16)
EPSILON = 1e-5


def group_norm(net: Net, name: str, image: Value) -> Value:
    channels = (image.shape[0],)
    parts = (
        net.weight(f"{name}.weight", channels, Uniform(0.75, 1.25)),
        net.weight(f"{name}.bias", channels, Normal(0.1)),
    )
    return net.add("GroupNormalization", image, *parts, shape=image.shape, num_groups=GROUPS, epsilon=EPSILON)


def time_features(net: Net, time: Value) -> Value:
    """Describe a time, a number per item, by cosines and sines of slower and slower waves."""
    angles = net.add("Mul", time, net.constant((1, HALF), lambda: [SPEEDS]), shape=(HALF,))
    parts = (net.elementwise("Cos", angles), net.elementwise("Sin", angles))
    return net.add("Concat", *parts, shape=(FEATURES,), axis=1)


def features_at(time: int) -> list[float]:
    """Compute the same of a time that is known."""
    angles = [time * speed for speed in SPEEDS]
    return [*map(math.cos, angles), *map(math.sin, angles)]


def noise(net: Net, latent: Value, features: Value, text: Value) -> Value:
    """Find the noise in a latent image."""
    wide, small = WIDTHS
    time = net.linear("time.first", features, TIME_WIDTH, size=DECISIVE)
    time = swish(net, net.linear("time.second", swish(net, time), TIME_WIDTH, size=SWISHED**0.5))
    first = convolution(net, "in", latent, wide, (3, 3), power=WHOLE, symmetric=True)
    second = _residual(net, "down.0", first, time, wide)
    hidden = convolution(net, "down.halve", second, wide, (3, 3), stride=2, power=WHOLE, symmetric=True)
    third = hidden
    hidden = _attending(net, "down.1.attention", _residual(net, "down.1", hidden, time, small), text)
    fourth = hidden
    hidden = _residual(net, "middle.0", hidden, time, small)
    hidden = _residual(net, "middle.1", _attending(net, "middle.attention", hidden, text), time, small)
    hidden = _residual(net, "up.0", joined(net, hidden, fourth), time, small)
    hidden = _attending(net, "up.0.attention", hidden, text)
    hidden = _residual(net, "up.1", joined(net, hidden, third), time, small)
    hidden = convolution(net, "up.double", doubled(net, hidden), small, (3, 3), power=WHOLE, symmetric=True)
    hidden = _residual(net, "up.2", joined(net, hidden, second), time, wide)
    hidden = _residual(net, "up.3", joined(net, hidden, first), time, wide)
    hidden = swish(net, group_norm(net, "out.norm", hidden))
    return convolution(net, "out", hidden, LATENT[0], (3, 3), power=SWISHED, symmetric=True)


def _residual(net: Net, name: str, image: Value, time: Value, outward: int) -> Value:
    hidden = swish(net, group_norm(net, f"{name}.norm1", image))
    hidden = convolution(net, f"{name}.first", hidden, outward, (3, 3), power=SWISHED, symmetric=True)
    shift = net.reshape(net.linear(f"{name}.time", time, outward), outward, 1, 1)
    hidden = swish(net, group_norm(net, f"{name}.norm2", net.sum(hidden, shift)))
    # Half as much power as there is already.
    hidden = convolution(net, f"{name}.second", hidden, outward, (3, 3), power=SWISHED / 2, symmetric=True)
    if image.shape[0] != outward:
        image = convolution(net, f"{name}.beside", image, outward, (1, 1), power=WHOLE)
    return net.sum(image, hidden)


def _attending(net: Net, name: str, image: Value, text: Value) -> Value:
    """Let every place attend to all places, then to the tokens of the text, and pass it through a gated layer."""
    channels, height, width = image.shape
    hidden = net.transpose(net.reshape(group_norm(net, f"{name}.norm", image), channels, height * width), 2, 1)
    hidden = net.linear(f"{name}.in", hidden, channels)
    normed = layer_norm(net, f"{name}.norm1", hidden, EPSILON)
    hidden = net.sum(hidden, attention(net, f"{name}.self", normed, HEADS, bias=False))
    normed = layer_norm(net, f"{name}.norm2", hidden, EPSILON)
    hidden = net.sum(hidden, attention(net, f"{name}.text", normed, HEADS, bias=False, seen=text))
    normed = layer_norm(net, f"{name}.norm3", hidden, EPSILON)
    both = net.linear(f"{name}.gated", normed, 8 * channels, size=DECISIVE)
    parts = net.add_split("Split", both, shapes=[(height * width, 4 * channels)] * 2, axis=2, num_outputs=2)
    gated = net.product(parts[0], net.elementwise("Gelu", parts[1]))
    hidden = net.sum(hidden, net.linear(f"{name}.narrowed", gated, channels, size=MODEST))
    found = net.linear(f"{name}.out", hidden, channels, size=MODEST)
    return net.sum(image, net.reshape(net.transpose(found, 2, 1), channels, height, width))
