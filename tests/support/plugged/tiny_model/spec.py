"""y = x w, with labels left out."""

from __future__ import annotations

from fairlap.models.spec import Normal, Spec, Tensor, Weight

SPEC = Spec(
    name="tiny",
    task="multiplication",
    inputs=(Tensor("x", ("batch", 4)),),
    outputs=(Tensor("y", ("batch", 3)),),
    weights=(Weight("w", (4, 3), Normal(0.5)),),
    parameters=12,
    gmacs_per_item=12e-9,
    published="arithmetic",
)
