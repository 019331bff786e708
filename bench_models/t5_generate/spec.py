"""T5 in the size of `t5:tiny`: a prompt of 64 tokens, and an answer of 32, after the token 0 with which it begins."""

from __future__ import annotations

from fairlap.bench_models.t5.spec import HEAD, IDS, VOCABULARY, layers_of
from fairlap.models.spec import BATCH, Constant, Spec, Tensor

PROMPT, TOKENS = 64, 32
CONTINUATION = "continuation"
LAYERS = layers_of("tiny")
NET = LAYERS.net(PROMPT, TOKENS)
_PAIRS_UNSEEN = TOKENS * (TOKENS - 1) // 2  # a token and a later one


def names_of(kind: str) -> list[str]:
    """Name the keys and the values of every layer, which are those of the decoder's tokens or of the prompt."""
    return [f"{kind}{part}_{layer}" for layer in range(LAYERS.count) for part in ("keys", "values")]


SPEC = Spec(
    name="t5_generate",
    task="text generation",
    inputs=(
        Tensor("input_ids", (BATCH, PROMPT), IDS, "int32"),
        Tensor(CONTINUATION, (BATCH, TOKENS - 1), IDS, "int32"),
    ),
    outputs=(
        Tensor("logits", (BATCH, TOKENS, VOCABULARY), Constant(0.0)),
        Tensor("chosen_logits", (BATCH, TOKENS), Constant(0.0)),
    ),
    weights=NET.weights,
    parameters=15_570_688,
    gmacs_per_item=(NET.macs - 2 * LAYERS.count * LAYERS.heads.queries * HEAD * _PAIRS_UNSEEN) / 1e9,
    published="T5-efficient tiny (parameters); arithmetic: `t5:tiny` without pairs of a token and a later one",
    modes=("infer",),
    precisions=("fp32",),
    continuation=CONTINUATION,
)
