"""The layers of GPT-2, three of them and narrower, with logits after each of 64 characters."""

from __future__ import annotations

from fairlap.bench_models.gpt2.weights import Size, weights_of
from fairlap.models.spec import LEARNS, Constant, Integers, Spec, Tensor
from fairlap.request.fields.training import AdamW, Schedule, Training

TOKENS = 64
CHARACTERS = 96  # a line feed and the printable ones of ASCII
SIZE = Size(layers=3, heads=4, width=64, context=TOKENS, vocabulary=CHARACTERS)
IMPLEMENTED_IN = "fairlap.bench_models.gpt2"
DOES = "every_logit"

SPEC = Spec(
    name="characters",
    task="text generation",
    inputs=(Tensor("input_ids", ("batch", TOKENS), Integers(0, CHARACTERS), "int32"),),
    outputs=(Tensor("logits", ("batch", TOKENS, CHARACTERS), Constant(0.0)),),
    weights=weights_of(SIZE),
    parameters=160_320,
    gmacs_per_item=0.011_403_264,
    published="arithmetic: 3 x 12 x 64² products and 64 x 96 for the logits for each of 64 characters, 2 x 64 for each "
    "of 3 x 64² pairs",
    loss="cross_entropy",
    modes=LEARNS,
    training=Training(AdamW(lr=0.003), Schedule(warmup=50)),
    default_batch=32,
    data_set="characters",
)
