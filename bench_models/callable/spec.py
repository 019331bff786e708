"""The model for callables without arguments, and commands: that they are called is checked, not what they compute.

Callables with arguments that are drawn are opened as a user's model is; see ``fairlap.models.sources.callables``.
"""

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
