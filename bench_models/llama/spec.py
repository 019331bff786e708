"""Llama 2's layers read 128 tokens: rotary positions, heads that share keys, gated feed-forward."""

from __future__ import annotations

from functools import cache

from fairlap.bench_models.graphs.attention import (
    DECISIVE,
    MODEST,
    Heads,
    attention,
    later_tokens,
    rms_norm,
    rotations,
)
from fairlap.bench_models.graphs.net import Net, Sized, Value
from fairlap.models.names import sizes_of_family
from fairlap.models.spec import BATCH, Integers, Normal, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
TOKENS = 128
EPSILON = 1e-5
_SPREAD_OF_LOGITS = 2.4


@cache
def in_size(size: str) -> Sized:
    own = sizes_of_family("llama")[size]
    heads = Heads(own["heads"], own["key_heads"], own["width"] // own["heads"])
    net = _net(own["vocabulary"], own["width"], own["layers"], own["intermediate"], heads)
    spec = net.spec(
        f"llama:{size}",
        task="language modelling",
        published=f"llama2.c, stories{size.upper()} (sizes); GMACs by arithmetic, for 128 tokens",
        parameters=own["parameters"],
        loss="cross_entropy",
    )
    return Sized(net, spec)


def _gated(net: Net, name: str, hidden: Value, intermediate: int) -> Value:
    gate = net.linear(f"{name}.gate", hidden, intermediate, bias=False, size=DECISIVE)
    opened = net.product(gate, net.elementwise("Sigmoid", gate))
    wide = net.product(opened, net.linear(f"{name}.up", hidden, intermediate, bias=False, size=DECISIVE))
    return net.linear(f"{name}.down", wide, hidden.shape[-1], bias=False, size=MODEST)


def _net(vocabulary: int, width: int, layers: int, intermediate: int, heads: Heads) -> Net:
    net = Net(Tensor("tokens", (BATCH, TOKENS), Integers(0, vocabulary), "int32"))
    # The table is that of the logits too, so its size is theirs over the root of the width.
    table = net.weight("embedding.weight", (vocabulary, width), Normal(_SPREAD_OF_LOGITS * width**-0.5))
    hidden = net.add("Gather", table, net.input("tokens"), shape=(TOKENS, width), axis=0)
    angles, unseen = rotations(net, TOKENS, heads.size), later_tokens(net, TOKENS)
    for number in range(layers):
        name = f"layers.{number}"
        normed = rms_norm(net, f"{name}.norm1", hidden, EPSILON)
        seen = attention(net, f"{name}.attention", normed, heads, bias=False, rotations=angles, unseen=unseen)
        hidden = net.sum(hidden, seen)
        hidden = net.sum(hidden, _gated(net, name, rms_norm(net, f"{name}.norm2", hidden, EPSILON), intermediate))
    turned = net.add("Transpose", table, shape=(width, vocabulary), perm=[1, 0])
    net.output(net.matrix_product(rms_norm(net, "norm", hidden, EPSILON), turned, (TOKENS, vocabulary)), "logits")
    return net
