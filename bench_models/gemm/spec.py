"""The product of two matrices. The second one is a weight, and lies (inner, columns) as a product reads it."""

from __future__ import annotations

from fairlap.models.spec import Constant, Normal, Spec, Tensor, Weight

ROWS = INNER = COLUMNS = 512

IMPLEMENTED_IN = "fairlap.bench_models.single_operations"
SPEC = Spec(
    name="gemm",
    task="matrix product",
    inputs=(Tensor("left", ("batch", ROWS, INNER)),),
    outputs=(Tensor("product", ("batch", ROWS, COLUMNS), Constant(0.0)),),
    weights=(Weight("right", (INNER, COLUMNS), Normal(INNER**-0.5)),),
    parameters=262_144,
    gmacs_per_item=0.134217728,
    published="arithmetic: 512 x 512 elements, and 512 products for each of 512 x 512 results",
)
