"""One token after 128 that are in the cache.

A step gives back the whole cache, grown by one: that is what the next step takes in, in the loops of Transformers and
of exported graphs alike, and only who owns the memory of the cache can write into it in place.
"""

from __future__ import annotations

from fairlap.bench_models.gpt2.weights import GPT2_TOLERANCES, SMALL, cache_names, caches, weights_of
from fairlap.models.spec import Constant, Integers, Normal, Spec, Tensor

IMPLEMENTED_IN = "fairlap.bench_models.gpt2"
DOES, SIZE = "decode", SMALL
PAST = 128
PAST_NAMES = cache_names(SMALL, "past_")

SPEC = Spec(
    name="gpt2_decode",
    task="text generation",
    inputs=(
        Tensor("input_ids", ("batch", 1), Integers(0, SMALL.vocabulary), "int32"),
        *caches(SMALL, PAST, Normal(1.0), "past_"),
    ),
    outputs=(Tensor("logits", ("batch", SMALL.vocabulary), Constant(0.0)), *caches(SMALL, PAST + 1, Constant(0.0))),
    weights=weights_of(SMALL),
    parameters=124_439_808,
    gmacs_per_item=0.125_909_760,
    published="OpenAI, gpt-2 124M (parameters); arithmetic: 12 x 12 x 768² products for the token, "
    "2 x 64 for each of 12 x 12 x 129 pairs, 768 x 50,257 for the logits",
    modes=("infer",),
    tolerances=GPT2_TOLERANCES,
)
