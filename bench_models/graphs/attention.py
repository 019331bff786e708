"""Layers of transformers: normalisations, attention with fewer heads of keys than of queries, rotary positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import Normal, Uniform

# Attention to many tokens at once is an average and makes tokens alike. Scores that decide for few tokens, and layers
# that add less than there is already, keep them apart.
DECISIVE, MODEST = 1.5, 0.5
UNSEEN = -1e4  # added to the score of a key that a query shall not see: its share is 0 in every precision


@dataclass(frozen=True)
class Heads:
    """Each head of keys and values serves as many heads of queries."""

    queries: int
    keys: int
    size: int

    @property
    def sharing(self) -> int:
        return self.queries // self.keys


def layer_norm(net: Net, name: str, value: Value, epsilon: float) -> Value:
    features = (value.shape[-1],)
    scale = net.weight(f"{name}.weight", features, Uniform(0.75, 1.25))
    shift = net.weight(f"{name}.bias", features, Normal(0.1))
    return net.add("LayerNormalization", value, scale, shift, shape=value.shape, epsilon=epsilon)


def rms_norm(net: Net, name: str, value: Value, epsilon: float) -> Value:
    """Divide by the root of the mean square."""
    axes = net.constant((1,), lambda: (-1,), "int64")
    mean = net.add("ReduceMean", net.product(value, value), axes, shape=(*value.shape[:-1], 1), keepdims=1)
    root = net.elementwise("Sqrt", net.sum(mean, net.number(epsilon)))
    scaled = net.add("Div", value, root, shape=value.shape)
    return net.product(scaled, net.weight(f"{name}.weight", (value.shape[-1],), Uniform(0.75, 1.25)))


def attention(
    net: Net,
    name: str,
    hidden: Value,
    heads: Heads,
    *,
    bias: bool,
    rotations: tuple[Value, Value] | None = None,
    unseen: Value | None = None,
    seen: Value | None = None,
    divided: bool = True,
) -> Value:
    """``rotations`` turn queries and keys by their positions; ``unseen`` is added to the scores.

    ``seen`` are other tokens than its own, of which keys and values are made. Scores that are not ``divided`` by the
    root of a head's size get queries that are smaller by it.
    """
    seen = hidden if seen is None else seen
    tokens, features = hidden.shape
    split = (tokens, heads.keys, heads.sharing, heads.size)
    of_query = DECISIVE if divided else DECISIVE * heads.size**-0.5
    query = net.linear(f"{name}.query", hidden, heads.queries * heads.size, bias=bias, size=of_query)
    key = net.linear(f"{name}.key", seen, heads.keys * heads.size, bias=bias, size=DECISIVE)
    value = net.linear(f"{name}.value", seen, heads.keys * heads.size, bias=bias)
    query = net.transpose(net.reshape(query, *split), 2, 3, 1, 4)
    key, value = (
        net.transpose(net.reshape(each, seen.shape[0], heads.keys, 1, heads.size), 2, 3, 1, 4) for each in (key, value)
    )
    if rotations is not None:
        query, key = (_turned(net, each, *rotations) for each in (query, key))
    by_head = (heads.keys, heads.sharing, tokens)
    scores = net.matrix_product(query, net.transpose(key, 1, 2, 4, 3), (*by_head, seen.shape[0]))
    if divided:
        scores = net.add("Div", scores, net.number(heads.size**0.5), shape=scores.shape)
    if unseen is not None:
        scores = net.sum(scores, unseen)
    attended = net.matrix_product(net.elementwise("Softmax", scores, axis=-1), value, (*by_head, heads.size))
    joined = net.reshape(net.transpose(attended, 3, 1, 2, 4), tokens, heads.queries * heads.size)
    return net.linear(f"{name}.output", joined, features, bias=bias, size=MODEST)


def rotations(net: Net, tokens: int, size: int, base: float = 10_000.0) -> tuple[Value, Value]:
    """Make the cosines and sines of rotary positions; the halves of a head are turned against each other."""
    return (
        net.constant((tokens, size), lambda: _angles(math.cos, tokens, size, base)),
        net.constant((tokens, size), lambda: _angles(math.sin, tokens, size, base)),
    )


def later_tokens(net: Net, tokens: int) -> Value:
    """Make what hides later tokens from earlier ones."""
    return net.constant(
        (tokens, tokens),
        lambda: [[0.0 if key <= query else UNSEEN for key in range(tokens)] for query in range(tokens)],
    )


def _angles(function: Callable[[float], float], tokens: int, size: int, base: float) -> Sequence[Sequence[float]]:
    speeds = [base ** (-2 * number / size) for number in range(size // 2)] * 2
    return [[function(place * speed) for speed in speeds] for place in range(tokens)]


def _turned(net: Net, value: Value, cosines: Value, sines: Value) -> Value:
    *outer, size = value.shape
    first, second = net.add_split("Split", value, shapes=[(*outer, size // 2)] * 2, axis=-1, num_outputs=2)
    other = net.add("Concat", net.elementwise("Neg", second), first, shape=value.shape, axis=-1)
    return net.sum(net.product(value, cosines), net.product(other, sines))
