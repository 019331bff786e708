from __future__ import annotations

from fairlap.models.spec import Constant, Normal, Spec, Tensor, Weight

SPEC = Spec(
    name="example_model",
    task="example",
    inputs=(Tensor("row", ("batch", 64)),),
    outputs=(Tensor("product", ("batch", 32), Constant(0.0)),),
    weights=(Weight("matrix", (32, 64), Normal(0.125)),),
    parameters=2048,
    gmacs_per_item=2.048e-6,
    published="arithmetic",
)
