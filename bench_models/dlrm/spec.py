"""DLRM in its sizes for Criteo's display advertising, with tables of 10,000 rows and bags of four.

The tables are one after the other in one array, as libraries of embeddings keep them.
"""

from __future__ import annotations

from fairlap.bench_models.graphs.net import RESTORED, Net, Value
from fairlap.models.spec import BATCH, Integers, Normal, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
NUMBERS, FEATURES, ROWS, BAG, WIDTH = 13, 26, 10_000, 4, 16
SKEW = 1.05  # few rows are read most of the time
BOTTOM, TOP = (512, 256, 64, WIDTH), (512, 256)
VECTORS = FEATURES + 1


def _rectified(net: Net, name: str, hidden: Value, widths: tuple[int, ...]) -> Value:
    for number, width in enumerate(widths):
        hidden = net.elementwise("Relu", net.linear(f"{name}.{number}", hidden, width, size=RESTORED))
    return hidden


def _bags(net: Net) -> Value:
    """Read and add four rows of each table."""
    tables = net.weight("tables", (FEATURES * ROWS, WIDTH), Normal(0.5 / BAG**0.5))
    begins = net.constant((FEATURES, 1), lambda: [[number * ROWS] for number in range(FEATURES)], "int32")
    rows = net.add("Gather", tables, net.sum(net.input("rows"), begins), shape=(FEATURES, BAG, WIDTH), axis=0)
    axes = net.constant((1,), lambda: (2,), "int64")
    return net.add("ReduceSum", rows, axes, shape=(FEATURES, WIDTH), keepdims=0)


def _pairs(net: Net, vectors: Value) -> Value:
    """Multiply each vector with each other one, once."""
    products = net.matrix_product(vectors, net.transpose(vectors, 2, 1), (VECTORS, VECTORS))
    once = [one * VECTORS + other for one in range(VECTORS) for other in range(one)]
    places = net.constant((len(once),), lambda: once, "int64")
    return net.add("Gather", net.reshape(products, VECTORS**2), places, shape=(len(once),), axis=1)


def _net() -> Net:
    net = Net(
        Tensor("numbers", (BATCH, NUMBERS)),
        Tensor("rows", (BATCH, FEATURES, BAG), Integers(0, ROWS, skew=SKEW), "int32"),
    )
    dense = _rectified(net, "bottom", net.input("numbers"), BOTTOM)
    parts = (net.reshape(dense, 1, WIDTH), _bags(net))
    pairs = _pairs(net, net.add("Concat", *parts, shape=(VECTORS, WIDTH), axis=1))
    joined = net.add("Concat", dense, pairs, shape=(WIDTH + pairs.shape[0],), axis=1)
    net.output(net.linear("head", _rectified(net, "top", joined, TOP), 1), "logit")
    return net


NET = _net()
SPEC = NET.spec(
    "dlrm",
    task="recommendation",
    published="DLRM's layers for Criteo's data, smaller tables; arithmetic",
    parameters=4_635_985,
    loss="square_error",
    default_batch=32,
    read_weights=4_635_985 - FEATURES * ROWS * WIDTH,  # and a few rows of the tables
)
