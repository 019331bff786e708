"""Queries come in; keys and values are weights, as in a learned memory, so that it has gradients.

There are more keys than queries, so that mixing up the two shows.
"""

from __future__ import annotations

from fairlap.models.spec import Constant, Normal, Spec, Tensor, Weight

HEADS, QUERIES, KEYS, SIZE = 12, 128, 256, 64
SCALE = SIZE**-0.5

IMPLEMENTED_IN = "fairlap.bench_models.single_operations"
SPEC = Spec(
    name="attention",
    task="attention",
    inputs=(Tensor("query", ("batch", HEADS, QUERIES, SIZE)),),
    outputs=(Tensor("attended", ("batch", HEADS, QUERIES, SIZE), Constant(0.0)),),
    weights=(
        Weight("key", (HEADS, KEYS, SIZE), Normal(1.0)),
        # Averages of values come out 0.15 wide: far above every tolerance, and scores in bfloat16 still pass.
        Weight("value", (HEADS, KEYS, SIZE), Normal(1.5)),
    ),
    parameters=393_216,
    gmacs_per_item=0.050331648,
    published="arithmetic: 12 x 256 keys and values of 64; 12 x 128 x 256 pairs with 64 products for each of both",
)
