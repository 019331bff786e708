"""Softmax over the last axis, of rows spread widely enough that a few elements share most of the sum."""

from __future__ import annotations

from fairlap.models.spec import Constant, Normal, Spec, Tensor, Tolerance

ROWS, COLUMNS = 512, 512

IMPLEMENTED_IN = "fairlap.bench_models.single_operations"
SPEC = Spec(
    name="softmax",
    task="softmax",
    inputs=(Tensor("scores", ("batch", ROWS, COLUMNS), Normal(2.0)),),
    outputs=(Tensor("shares", ("batch", ROWS, COLUMNS), Constant(0.0)),),
    weights=(),
    parameters=0,
    gmacs_per_item=None,
    published="arithmetic: no weights; five operations for each element, none of them a multiply-accumulate",
    # The largest, the difference, the exponential, the sum and the quotient.
    operations_per_item=5.0 * ROWS * COLUMNS,
    modes=("infer",),
    # A row adds up to one, so an element is 0.002 on average: the usual absolute tolerances would let all pass.
    tolerances={"fp32": Tolerance(0.999, 1e-7, 1e-3), "bf16": Tolerance(0.99, 1e-5, 1e-1)},
)
