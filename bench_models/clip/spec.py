"""Two towers in the shape of CLIP, in small sizes: an item is an image and eight texts, of which one describes it.

A vision transformer and a causal text transformer end in vectors of length one, whose products are the logits.
"""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.graphs.attention import DECISIVE, MODEST, Heads, attention, later_tokens, layer_norm
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import BATCH, Integers, Normal, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
IMAGE, PATCH = 64, 8
TEXTS, TOKENS, VOCABULARY = 8, 16, 1000
WIDTH, LAYERS, SHARED = 128, 4, 64
HEADS = Heads(queries=4, keys=4, size=32)
PATCHES = (IMAGE // PATCH) ** 2
EPSILON = 1e-5
SHARPNESS = 1 / 0.07  # what products are multiplied by, where CLIP begins


def _layers(net: Net, name: str, hidden: Value, unseen: Value | None = None) -> Value:
    for number in range(LAYERS):
        own = f"{name}.layers.{number}"
        normed = layer_norm(net, f"{own}.norm1", hidden, EPSILON)
        hidden = net.sum(hidden, attention(net, f"{own}.attention", normed, HEADS, bias=True, unseen=unseen))
        normed = layer_norm(net, f"{own}.norm2", hidden, EPSILON)
        wide = net.elementwise("Gelu", net.linear(f"{own}.first", normed, 4 * WIDTH, size=DECISIVE))
        hidden = net.sum(hidden, net.linear(f"{own}.second", wide, WIDTH, size=MODEST))
    return layer_norm(net, f"{name}.norm", hidden, EPSILON)


def _vector(net: Net, name: str, tokens: Value, which: int) -> Value:
    """Project one token, and make the vector one of length one."""
    chosen = net.add("Gather", tokens, net.constant((), lambda: which, "int64"), shape=(WIDTH,), axis=1)
    found = net.linear(f"{name}.projection", chosen, SHARED, bias=False)
    axes = net.constant((1,), lambda: (-1,), "int64")
    squares = net.add("ReduceSum", net.product(found, found), axes, shape=(1,), keepdims=1)
    return net.add("Div", found, net.elementwise("Sqrt", squares), shape=found.shape)


def _of_image(net: Net) -> Value:
    inward, side = 3 * PATCH**2, IMAGE // PATCH
    kernel = net.weight("image.patches.weight", (WIDTH, 3, PATCH, PATCH), Normal(inward**-0.5))
    net.macs += WIDTH * PATCHES * inward
    sizes: dict[str, Any] = {"kernel_shape": [PATCH, PATCH], "strides": [PATCH, PATCH]}
    patches = net.add("Conv", net.input("image"), kernel, shape=(WIDTH, side, side), **sizes)
    hidden = net.transpose(net.reshape(patches, WIDTH, PATCHES), 2, 1)
    hidden = net.sum(hidden, net.weight("image.positions", (1, PATCHES, WIDTH), Normal(0.5)))
    return _vector(net, "image", _layers(net, "image", hidden), 0)


def _of_texts(net: Net) -> Value:
    tokens = net.taken_apart(net.input("texts"))
    table = net.weight("text.embedding.weight", (VOCABULARY, WIDTH), Normal(1.0))
    hidden = net.add("Gather", table, tokens, shape=(TOKENS, WIDTH), axis=0)
    hidden = net.sum(hidden, net.weight("text.positions", (1, TOKENS, WIDTH), Normal(0.5)))
    hidden = _layers(net, "text", hidden, later_tokens(net, TOKENS))
    return net.put_together(_vector(net, "text", hidden, TOKENS - 1))


def _net() -> Net:
    net = Net(
        Tensor("image", (BATCH, 3, IMAGE, IMAGE)),
        Tensor("texts", (BATCH, TEXTS, TOKENS), Integers(0, VOCABULARY), "int32"),
    )
    image = net.reshape(_of_image(net), 1, SHARED)
    products = net.matrix_product(image, net.transpose(_of_texts(net), 2, 1), (1, TEXTS))
    sharpness = net.weight("sharpness", (1,), Normal(0.5, mean=SHARPNESS))
    net.output(net.product(net.reshape(products, TEXTS), sharpness), "logits")
    return net


NET = _net()
SPEC = NET.spec(
    "clip",
    task="images and texts",
    published="CLIP (layers, in small sizes); arithmetic",
    parameters=1_765_889,
    loss="cross_entropy",
)
