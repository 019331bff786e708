"""The model for plain callables. fairlap checks that they are called, not what they compute."""

from __future__ import annotations

from fairlap.models.spec import Spec, Tensor

SPEC = Spec(
    name="callable",
    task="whatever is called",
    inputs=(Tensor("ticket", ("batch", 4)),),
    outputs=(Tensor("stub", ("batch", 4)),),
    weights=(),
    parameters=0,
    gmacs_per_item=None,
    published="nothing is computed but what the callable computes",
    modes=("infer",),
    precisions=("fp32",),
    computes=False,
)
