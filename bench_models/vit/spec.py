"""A vision transformer: patches of 16 pixels, a class token, layers that normalise first."""

from __future__ import annotations

from functools import cache

from fairlap.bench_models.graphs.attention import DECISIVE, MODEST, Heads, attention, layer_norm
from fairlap.bench_models.graphs.net import Net, Sized, Value
from fairlap.models.names import sizes_of_family
from fairlap.models.spec import BATCH, Normal, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
IMAGE, PATCH, CLASSES = 224, 16, 1000
HEAD = 64
PATCHES = (IMAGE // PATCH) ** 2
EPSILON = 1e-6


@cache
def in_size(size: str) -> Sized:
    own = sizes_of_family("vit")[size]
    net = _net(own["width"], own["layers"])
    spec = net.spec(
        f"vit:{size}",
        task="image classification",
        published=f"timm, vit_{size}_patch16_224 (parameters); GMACs by arithmetic",
        parameters=own["parameters"],
        loss="cross_entropy",
    )
    return Sized(net, spec)


def _patches(net: Net, image: Value, width: int) -> Value:
    inward, side = 3 * PATCH**2, IMAGE // PATCH
    kernel = net.weight("patches.weight", (width, 3, PATCH, PATCH), Normal(inward**-0.5))
    bias = net.weight("patches.bias", (width,), Normal(0.1))
    net.macs += width * PATCHES * inward
    size = [PATCH, PATCH]
    found = net.add("Conv", image, kernel, bias, shape=(width, side, side), kernel_shape=size, strides=size)
    return net.transpose(net.reshape(found, width, PATCHES), 2, 1)


def _layer(net: Net, name: str, hidden: Value) -> Value:
    width = hidden.shape[-1]
    heads = Heads(queries=width // HEAD, keys=width // HEAD, size=HEAD)
    seen = attention(net, f"{name}.attention", layer_norm(net, f"{name}.norm1", hidden, EPSILON), heads, bias=True)
    hidden = net.sum(hidden, seen)
    wide = net.linear(f"{name}.first", layer_norm(net, f"{name}.norm2", hidden, EPSILON), 4 * width, size=DECISIVE)
    return net.sum(hidden, net.linear(f"{name}.second", net.elementwise("Gelu", wide), width, size=MODEST))


def _net(width: int, layers: int) -> Net:
    net = Net(Tensor("image", (BATCH, 3, IMAGE, IMAGE)))
    tokens = PATCHES + 1
    before = net.constant((6,), lambda: (0, 1, 0, 0, 0, 0), "int64")
    after = net.constant((6,), lambda: (0, 0, 0, 0, PATCHES, 0), "int64")
    hidden = net.add("Pad", _patches(net, net.input("image"), width), before, shape=(tokens, width))
    of_class = net.weight("class_token", (1, 1, width), Normal(1.0))
    hidden = net.sum(hidden, net.add("Pad", of_class, after, shape=(1, tokens, width)))
    hidden = net.sum(hidden, net.weight("positions", (1, tokens, width), Normal(0.5)))
    for number in range(layers):
        hidden = _layer(net, f"layers.{number}", hidden)
    first = net.constant((), lambda: 0, "int64")
    of_class = net.add("Gather", layer_norm(net, "norm", hidden, EPSILON), first, shape=(width,), axis=1)
    net.output(net.linear("head", of_class, CLASSES), "logits")
    return net
