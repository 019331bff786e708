"""A conformer reads 3.2 seconds of speech as log-mel features, and scores 29 characters for each of 80 frames.

Each layer has attention and a convolution between two halves of a perceptron. Two convolutions before it leave a fourth
of the frames. It learns by connectionist temporal classification.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fairlap.bench_models.graphs.attention import DECISIVE, MODEST, Heads, attention, layer_norm
from fairlap.bench_models.graphs.images import RECTIFIED, WHOLE, convolution, normalised, swish
from fairlap.bench_models.graphs.net import RESTORED, Net, Sized, Value
from fairlap.models.names import sizes_of_family
from fairlap.models.spec import BATCH, Normal, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
FRAMES, MELS = 320, 80
CHARACTERS = "_ 'abcdefghijklmnopqrstuvwxyz"  # the first one is the blank
KERNEL = 31
EPSILON = 1e-5


@cache
def in_size(size: str) -> Sized:
    own = sizes_of_family("conformer")[size]
    heads = Heads(own["heads"], own["heads"], own["width"] // own["heads"])
    net = _net(own["width"], own["layers"], heads, own["channels"])
    spec = net.spec(
        f"conformer:{size}",
        task="speech recognition",
        published="Conformer (layers, and the widths of its S and M); parameters and GMACs by arithmetic",
        parameters=own["parameters"],
        loss="ctc",
    )
    return Sized(net, spec)


def _perceptron(net: Net, name: str, hidden: Value) -> Value:
    """Add a half of what it makes."""
    normed = layer_norm(net, f"{name}.norm", hidden, EPSILON)
    wide = swish(net, net.linear(f"{name}.first", normed, 4 * hidden.shape[-1], size=DECISIVE))
    found = net.linear(f"{name}.second", wide, hidden.shape[-1])
    return net.sum(hidden, net.product(found, net.number(0.5)))


def _convolved(net: Net, name: str, hidden: Value) -> Value:
    """Add what a gate, a convolution over the frames of each channel and a linear layer make."""
    frames, width = hidden.shape
    both = net.linear(f"{name}.gated", layer_norm(net, f"{name}.norm", hidden, EPSILON), 2 * width, size=DECISIVE)
    parts = net.add_split("Split", both, shapes=[(frames, width)] * 2, axis=-1, num_outputs=2)
    gated = net.transpose(net.product(parts[0], net.elementwise("Sigmoid", parts[1])), 2, 1)
    weight = net.weight(f"{name}.each.weight", (width, 1, KERNEL), Normal(DECISIVE * KERNEL**-0.5))
    bias = net.weight(f"{name}.each.bias", (width,), Normal(0.1))
    net.macs += width * frames * KERNEL
    sizes: dict[str, Any] = {"kernel_shape": [KERNEL], "pads": [KERNEL // 2] * 2, "group": width}
    each = normalised(net, f"{name}.norm2", net.add("Conv", gated, weight, bias, shape=gated.shape, **sizes))
    return net.sum(hidden, net.linear(f"{name}.mixed", net.transpose(swish(net, each), 2, 1), width, size=MODEST))


def _layer(net: Net, name: str, hidden: Value, heads: Heads) -> Value:
    hidden = _perceptron(net, f"{name}.before", hidden)
    normed = layer_norm(net, f"{name}.norm1", hidden, EPSILON)
    hidden = net.sum(hidden, attention(net, f"{name}.attention", normed, heads, bias=True))
    hidden = _perceptron(net, f"{name}.after", _convolved(net, f"{name}.convolution", hidden))
    return layer_norm(net, f"{name}.norm", hidden, EPSILON)


def _net(width: int, layers: int, heads: Heads, channels: int) -> Net:
    net = Net(Tensor("features", (BATCH, FRAMES, MELS)))
    image = net.reshape(net.input("features"), 1, FRAMES, MELS)
    for number, power in enumerate((WHOLE, RECTIFIED)):
        found = convolution(net, f"fewer.{number}", image, channels, (3, 3), stride=2, power=power, symmetric=True)
        image = net.elementwise("Relu", found)
    _, frames, mels = image.shape
    hidden = net.reshape(net.transpose(image, 2, 1, 3), frames, channels * mels)
    hidden = net.linear("in", hidden, width, size=RESTORED)
    for number in range(layers):
        hidden = _layer(net, f"layers.{number}", hidden, heads)
    net.output(net.linear("head", hidden, len(CHARACTERS), size=DECISIVE), "logits")
    return net
