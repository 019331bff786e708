"""The triad of STREAM, ``sum = left + SCALE * right``: one multiply-add for every twelve bytes moved.

At batch 4 each array has 16 MiB. Where a machine has larger caches, a larger batch leaves them.
"""

from __future__ import annotations

from fairlap.models.spec import Constant, Spec, Tensor

ELEMENTS = 2**20
SCALE = 3.0

IMPLEMENTED_IN = "fairlap.bench_models.single_operations"
SPEC = Spec(
    name="triad",
    task="multiply and add, element by element",
    inputs=(Tensor("left", ("batch", ELEMENTS)), Tensor("right", ("batch", ELEMENTS))),
    outputs=(Tensor("sum", ("batch", ELEMENTS), Constant(0.0)),),
    weights=(),
    parameters=0,
    gmacs_per_item=ELEMENTS / 1e9,
    published="arithmetic: no weights, and one multiply-accumulate for each element",
    modes=("infer",),
    default_batch=4,
)
