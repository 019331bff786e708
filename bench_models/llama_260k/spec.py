"""Llama 2's layers in the sizes of llama2.c's stories260K: rotary positions, shared keys, gated feed-forward."""

from __future__ import annotations

from fairlap.bench_models.graphs.attention import (
    DECISIVE,
    MODEST,
    Heads,
    attention,
    later_tokens,
    rms_norm,
    rotations,
)
from fairlap.bench_models.graphs.net import Net, Value
from fairlap.models.spec import BATCH, Integers, Normal, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
TOKENS, VOCABULARY = 128, 512
WIDTH, LAYERS, INTERMEDIATE = 64, 5, 172
HEADS = Heads(queries=8, keys=4, size=8)
EPSILON = 1e-5


def _gated(net: Net, name: str, hidden: Value) -> Value:
    gate = net.linear(f"{name}.gate", hidden, INTERMEDIATE, bias=False, size=DECISIVE)
    opened = net.product(gate, net.elementwise("Sigmoid", gate))
    wide = net.product(opened, net.linear(f"{name}.up", hidden, INTERMEDIATE, bias=False, size=DECISIVE))
    return net.linear(f"{name}.down", wide, WIDTH, bias=False, size=MODEST)


def _net() -> Net:
    net = Net(Tensor("tokens", (BATCH, TOKENS), Integers(0, VOCABULARY), "int32"))
    table = net.weight("embedding.weight", (VOCABULARY, WIDTH), Normal(0.3))
    hidden = net.add("Gather", table, net.input("tokens"), shape=(TOKENS, WIDTH), axis=0)
    angles, unseen = rotations(net, TOKENS, HEADS.size), later_tokens(net, TOKENS)
    for number in range(LAYERS):
        name = f"layers.{number}"
        normed = rms_norm(net, f"{name}.norm1", hidden, EPSILON)
        seen = attention(net, f"{name}.attention", normed, HEADS, bias=False, rotations=angles, unseen=unseen)
        hidden = net.sum(hidden, seen)
        hidden = net.sum(hidden, _gated(net, name, rms_norm(net, f"{name}.norm2", hidden, EPSILON)))
    turned = net.add("Transpose", table, shape=(WIDTH, VOCABULARY), perm=[1, 0])
    net.output(net.matrix_product(rms_norm(net, "norm", hidden, EPSILON), turned, (TOKENS, VOCABULARY)), "logits")
    return net


NET = _net()
SPEC = NET.spec(
    "llama_260k",
    task="language modelling",
    published="llama2.c, stories260K (sizes); GMACs by arithmetic, for 128 tokens",
    parameters=260_032,
    loss="cross_entropy",
)
