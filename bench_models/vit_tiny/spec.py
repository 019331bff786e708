"""ViT-Ti/16 as published with DeiT: patches of 16 pixels, a class token, twelve layers that normalise first."""

from __future__ import annotations

from fairlap.bench_models.graphs.attention import DECISIVE, MODEST, Heads, attention, layer_norm
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import BATCH, Normal, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
IMAGE, PATCH, CLASSES = 224, 16, 1000
WIDTH, LAYERS, INTERMEDIATE = 192, 12, 768
HEADS = Heads(queries=3, keys=3, size=64)
PATCHES = (IMAGE // PATCH) ** 2
EPSILON = 1e-6


def _patches(net: Net, image: Value) -> Value:
    inward, side = 3 * PATCH**2, IMAGE // PATCH
    kernel = net.weight("patches.weight", (WIDTH, 3, PATCH, PATCH), Normal(inward**-0.5))
    bias = net.weight("patches.bias", (WIDTH,), Normal(0.1))
    net.macs += WIDTH * PATCHES * inward
    size = [PATCH, PATCH]
    found = net.add("Conv", image, kernel, bias, shape=(WIDTH, side, side), kernel_shape=size, strides=size)
    return net.transpose(net.reshape(found, WIDTH, PATCHES), 2, 1)


def _layer(net: Net, name: str, hidden: Value) -> Value:
    seen = attention(net, f"{name}.attention", layer_norm(net, f"{name}.norm1", hidden, EPSILON), HEADS, bias=True)
    hidden = net.sum(hidden, seen)
    wide = net.linear(f"{name}.first", layer_norm(net, f"{name}.norm2", hidden, EPSILON), INTERMEDIATE, size=DECISIVE)
    return net.sum(hidden, net.linear(f"{name}.second", net.elementwise("Gelu", wide), WIDTH, size=MODEST))


def _net() -> Net:
    net = Net(Tensor("image", (BATCH, 3, IMAGE, IMAGE)))
    tokens = PATCHES + 1
    before = net.constant((6,), lambda: (0, 1, 0, 0, 0, 0), "int64")
    after = net.constant((6,), lambda: (0, 0, 0, 0, PATCHES, 0), "int64")
    hidden = net.add("Pad", _patches(net, net.input("image")), before, shape=(tokens, WIDTH))
    of_class = net.weight("class_token", (1, 1, WIDTH), Normal(1.0))
    hidden = net.sum(hidden, net.add("Pad", of_class, after, shape=(1, tokens, WIDTH)))
    hidden = net.sum(hidden, net.weight("positions", (1, tokens, WIDTH), Normal(0.5)))
    for number in range(LAYERS):
        hidden = _layer(net, f"layers.{number}", hidden)
    first = net.constant((), lambda: 0, "int64")
    of_class = net.add("Gather", layer_norm(net, "norm", hidden, EPSILON), first, shape=(WIDTH,), axis=1)
    net.output(net.linear("head", of_class, CLASSES), "logits")
    return net


NET = _net()
SPEC = NET.spec(
    "vit_tiny",
    task="image classification",
    published="timm, vit_tiny_patch16_224 (parameters); GMACs by arithmetic",
    parameters=5_717_416,
    loss="cross_entropy",
)
