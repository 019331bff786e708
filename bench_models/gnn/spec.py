"""Messages along the edges of a graph, added up where they arrive: three rounds, then a class for the graph.

Edges are drawn, four to a node on average. A message is made of what its two ends are, and the sums are the segment
sums of graph libraries.
"""

from __future__ import annotations

from fairlap.bench_models.graphs.attention import layer_norm
from fairlap.bench_models.graphs.net import RESTORED, Net, Value
from fairlap.models.spec import BATCH, Integers, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
NODES, FEATURES, EDGES, CLASSES = 64, 16, 256, 10
WIDTH, ROUNDS = 64, 3
EPSILON = 1e-5


def _in_places(net: Net, name: str) -> Value:
    wide = net.add("Cast", net.input(name), shape=(EDGES,), to=7)  # int64, which GatherND wants
    return net.reshape(wide, EDGES, 1)


def _with_items(net: Net, places: Value) -> Value:
    """Put the number of its item before each place."""
    count = net.add("Shape", places, shape=(), start=0, end=1)
    only = net.add("Squeeze", count, shape=())
    first, step = net.constant((), lambda: 0, "int64"), net.constant((), lambda: 1, "int64")
    numbers = net.reshape(net.add("Range", first, only, step, shape=()), 1, 1)
    zeros = net.constant((1, EDGES, 1), lambda: [[[0]] * EDGES], "int64")
    return net.add("Concat", net.add("Add", numbers, zeros, shape=(EDGES, 1)), places, shape=(EDGES, 2), axis=2)


def _round(net: Net, name: str, nodes: Value, senders: Value, receivers: Value, into: Value) -> Value:
    ends = []
    for part, places in (("sender", senders), ("receiver", receivers)):
        own = net.linear(f"{name}.{part}", nodes, WIDTH)
        ends.append(net.add("GatherND", own, places, shape=(EDGES, WIDTH), batch_dims=1))
    messages = net.elementwise("Relu", net.sum(*ends))
    own = net.linear(f"{name}.own", nodes, WIDTH, size=RESTORED)
    added = net.add("ScatterND", own, into, messages, shape=(NODES, WIDTH), reduction="add")
    return net.sum(nodes, net.elementwise("Relu", layer_norm(net, f"{name}.norm", added, EPSILON)))


def _net() -> Net:
    edges = Integers(0, NODES)
    net = Net(
        Tensor("features", (BATCH, NODES, FEATURES)),
        Tensor("senders", (BATCH, EDGES), edges, "int32"),
        Tensor("receivers", (BATCH, EDGES), edges, "int32"),
    )
    senders, receivers = (_in_places(net, name) for name in ("senders", "receivers"))
    into = _with_items(net, receivers)
    nodes = net.linear("in", net.input("features"), WIDTH)
    for number in range(ROUNDS):
        nodes = _round(net, f"rounds.{number}", nodes, senders, receivers, into)
    mean = net.add("ReduceMean", nodes, net.constant((1,), lambda: (1,), "int64"), shape=(WIDTH,), keepdims=0)
    net.output(net.linear("head", mean, CLASSES), "logits")
    return net


NET = _net()
SPEC = NET.spec(
    "gnn",
    task="graph classification",
    published="arithmetic",
    parameters=39_562,
    loss="cross_entropy",
    default_batch=8,
)
