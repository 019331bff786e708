"""One added to each of a few elements. An identity would do less, but frameworks return the input itself for one."""

from __future__ import annotations

from fairlap.models.spec import Constant, Spec, Tensor

ELEMENTS = 8

IMPLEMENTED_IN = "fairlap.bench_models.single_operations"
SPEC = Spec(
    name="empty",
    task="the overhead of a call",
    inputs=(Tensor("some", ("batch", ELEMENTS)),),
    outputs=(Tensor("more", ("batch", ELEMENTS), Constant(0.0)),),
    weights=(),
    parameters=0,
    gmacs_per_item=ELEMENTS / 2 / 1e9,
    published="arithmetic: no weights, and one addition for each element, which is half a multiply-accumulate",
    modes=("infer",),
)
