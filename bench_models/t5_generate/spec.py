"""The layers of `t5` read a prompt of 64 tokens, and answer with 32 after the token 0 with which they begin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fairlap.bench_models.graphs.net import Net
from fairlap.bench_models.t5.spec import HEAD, IDS, VOCABULARY, Layers, layers_of
from fairlap.models.names import sizes_of_family
from fairlap.models.spec import BATCH, Constant, Spec, Tensor

PROMPT, TOKENS = 64, 32
CONTINUATION = "continuation"
_PAIRS_UNSEEN = TOKENS * (TOKENS - 1) // 2  # a token and a later one


@dataclass(frozen=True, eq=False)
class Answering:
    """A size, and the net of all its tokens at once. ``SPEC`` is what the module of a single model has."""

    SPEC: Spec
    net: Net
    layers: Layers

    def names_of(self, kind: str) -> list[str]:
        """Name the keys and the values of every layer, which are those of the decoder's tokens or of the prompt."""
        return [f"{kind}{part}_{layer}" for layer in range(self.layers.count) for part in ("keys", "values")]


@cache
def in_size(size: str) -> Answering:
    layers = layers_of(size)
    net = layers.net(PROMPT, TOKENS)
    macs = net.macs - 2 * layers.count * layers.heads.queries * HEAD * _PAIRS_UNSEEN
    spec = Spec(
        name=f"t5_generate:{size}",
        task="text generation",
        inputs=(
            Tensor("input_ids", (BATCH, PROMPT), IDS, "int32"),
            Tensor(CONTINUATION, (BATCH, TOKENS - 1), IDS, "int32"),
        ),
        outputs=(
            Tensor("logits", (BATCH, TOKENS, VOCABULARY), Constant(0.0)),
            Tensor("chosen_logits", (BATCH, TOKENS), Constant(0.0)),
        ),
        weights=net.weights,
        parameters=sizes_of_family("t5")[size]["parameters"],
        gmacs_per_item=macs / 1e9,
        published=f"as `t5:{size}` (parameters); arithmetic: that model without pairs of a token and a later one",
        modes=("infer",),
        precisions=("fp32",),
        continuation=CONTINUATION,
    )
    return Answering(spec, net, layers)
