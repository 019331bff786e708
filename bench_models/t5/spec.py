"""T5's layers: 64 tokens are read, and the 32 of an answer learn or are scored at once.

Scores of attention are not divided, and get a number for how far apart two tokens are, by buckets that grow. T5 1.1
has gated layers and a separate table for the logits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from fairlap.bench_models.graphs.attention import DECISIVE, MODEST, Heads, attention, later_tokens, rms_norm
from fairlap.bench_models.graphs.net import RESTORED, Net, Sized, Value
from fairlap.models.names import sizes_of_family
from fairlap.models.spec import BATCH, Integers, Normal, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.graphs"
VOCABULARY, READ, ANSWERED, HEAD = 32_128, 64, 32, 64
BUCKETS, FARTHEST = 32, 128
IDS = Integers(0, VOCABULARY)
EPSILON = 1e-6


@cache
def in_size(size: str) -> Sized:
    own = sizes_of_family("t5")[size]
    net = layers_of(size).net(READ, ANSWERED)
    spec = net.spec(
        f"t5:{size}",
        task="text to text",
        published=f"T5 (parameters); GMACs by arithmetic, for {READ} tokens read and {ANSWERED} written",
        parameters=own["parameters"],
        loss="cross_entropy",
        read_weights=own["parameters"] - (own["width"] * VOCABULARY if own["gated"] else 0),  # and rows of one table
    )
    return Sized(net, spec)


def bucket(apart: int, both_ways: bool) -> int:
    """Find the bucket of the distance from a token to one that it sees: small ones have their own, far ones share."""
    buckets, found = BUCKETS, 0
    if both_ways:
        buckets //= 2
        found = buckets if apart > 0 else 0
        distance = abs(apart)
    else:
        distance = max(0, -apart)
    near = buckets // 2
    if distance < near:
        return found + distance
    far = near + int(math.log(distance / near) / math.log(FARTHEST / near) * (buckets - near))
    return found + min(far, buckets - 1)


def layers_of(size: str) -> Layers:
    own = sizes_of_family("t5")[size]
    heads = Heads(own["heads"], own["heads"], HEAD)
    return Layers(own["width"], own["layers"], heads, own["intermediate"], own["gated"])


@dataclass(frozen=True)
class Layers:
    width: int
    count: int  # of the encoder, and of the decoder
    heads: Heads
    intermediate: int
    gated: bool

    def net(self, read: int, answered: int) -> Net:
        """Make a net of all tokens of a prompt and of an answer at once."""
        net = Net(
            Tensor("input_ids", (BATCH, read), IDS, "int32"),
            Tensor("decoder_input_ids", (BATCH, answered), IDS, "int32"),
        )
        prompt = self.stack(net, "encoder", self.embedded(net, net.input("input_ids")))
        hidden = self.stack(net, "decoder", self.embedded(net, net.input("decoder_input_ids")), prompt)
        net.output(self.scored(net, hidden), "logits")
        return net

    def embedded(self, net: Net, tokens: Value) -> Value:
        return net.add("Gather", self._table(net), tokens, shape=(*tokens.shape, self.width))

    def scored(self, net: Net, hidden: Value) -> Value:
        """Score all tokens by the table of the tokens, or by one of their own."""
        if self.gated:
            return net.linear("lm_head", hidden, VOCABULARY, bias=False)
        turned = net.add("Transpose", self._table(net), shape=(self.width, VOCABULARY), perm=[1, 0])
        smaller = net.product(hidden, net.number(self.width**-0.5))
        return net.matrix_product(smaller, turned, (hidden.shape[0], VOCABULARY))

    def _table(self, net: Net) -> Value:
        return net.weight("shared.weight", (VOCABULARY, self.width), Normal(1.0))

    def stack(self, net: Net, name: str, hidden: Value, read: Value | None = None) -> Value:
        """With what was ``read``, a decoder."""
        nearness = self._nearness(net, name, hidden.shape[0], both_ways=read is None)
        for number in range(self.count):
            own = f"{name}.layers.{number}"
            hidden = net.sum(hidden, self._attention(net, f"{own}.self", hidden, None, nearness))
            if read is not None:
                hidden = net.sum(hidden, self._attention(net, f"{own}.cross", hidden, read, None))
            hidden = net.sum(hidden, self.perceptron(net, own, rms_norm(net, f"{own}.norm", hidden, EPSILON)))
        return rms_norm(net, f"{name}.norm", hidden, EPSILON)

    def _attention(self, net: Net, name: str, hidden: Value, read: Value | None, nearness: Value | None) -> Value:
        normed = rms_norm(net, f"{name}.norm", hidden, EPSILON)
        return attention(net, name, normed, self.heads, bias=False, unseen=nearness, seen=read, divided=False)

    def perceptron(self, net: Net, name: str, normed: Value) -> Value:
        wide = net.linear(f"{name}.first", normed, self.intermediate, bias=False, size=DECISIVE)
        if self.gated:
            opened = net.elementwise("Gelu", wide, approximate="tanh")
            wide = net.product(opened, net.linear(f"{name}.up", normed, self.intermediate, bias=False, size=DECISIVE))
        else:
            wide = net.elementwise("Relu", wide)
        power = MODEST if self.gated else MODEST * RESTORED / DECISIVE
        return net.linear(f"{name}.second", wide, self.width, bias=False, size=power)

    def _nearness(self, net: Net, name: str, tokens: int, *, both_ways: bool) -> Value:
        """Make what is added to scores: a number for each head and bucket; later tokens are hidden from a decoder."""
        count = self.heads.keys
        table = net.weight(f"{name}.nearness", (BUCKETS, count), Normal(0.5))
        rows = [[bucket(key - query, both_ways) for key in range(tokens)] for query in range(tokens)]
        places = net.constant((tokens, tokens), lambda: rows, "int64")
        found = net.add("Gather", table, places, shape=(tokens, tokens, count), axis=0)
        by_head = net.add("Transpose", found, shape=(count, tokens, tokens), perm=[2, 0, 1])
        axes = net.constant((1,), lambda: (1,), "int64")
        by_head = net.add("Unsqueeze", by_head, axes, shape=(count, 1, tokens, tokens))
        return by_head if both_ways else net.sum(by_head, later_tokens(net, tokens))
