"""A prompt of 128 tokens. As in every loop that generates, only the last of them needs logits."""

from __future__ import annotations

from dataclasses import replace

from fairlap.bench_models.gpt2.weights import GPT2_TOLERANCES, SMALL, caches, weights_of
from fairlap.models.spec import Constant, Integers, Spec, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.gpt2"
DOES, SIZE = "prefill", SMALL
TOKENS = 128
FREE_SIZES = {"tokens": (1, SMALL.context)}


def _inputs(tokens: int) -> tuple[Tensor, ...]:
    return (Tensor("input_ids", ("batch", tokens), Integers(0, SMALL.vocabulary), "int32"),)


def _outputs(tokens: int) -> tuple[Tensor, ...]:
    return (Tensor("logits", ("batch", SMALL.vocabulary), Constant(0.0)), *caches(SMALL, tokens, Constant(0.0)))


SPEC = Spec(
    name="gpt2_prefill",
    task="text generation",
    inputs=_inputs(TOKENS),
    outputs=_outputs(TOKENS),
    weights=weights_of(SMALL),
    parameters=124_439_808,
    gmacs_per_item=11.212_223_232,
    published="OpenAI, gpt-2 124M (parameters); arithmetic: 12 x 12 x 768² products for each of 128 tokens, "
    "2 x 64 for each of 12 x 12 x 128² pairs, 768 x 50,257 for the logits",
    loss="cross_entropy",
    tolerances=GPT2_TOLERANCES,
)


def with_sizes(tokens: int) -> Spec:
    return replace(SPEC, inputs=_inputs(tokens), outputs=_outputs(tokens), gmacs_per_item=None)
