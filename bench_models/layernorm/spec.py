"""Layer normalisation over the last axis. Its input is off centre, so that forgetting the mean shows."""

from __future__ import annotations

from fairlap.models.spec import Constant, Normal, Spec, Tensor, Uniform, Weight

ROWS, FEATURES = 128, 768
EPSILON = 1e-5

IMPLEMENTED_IN = "fairlap.bench_models.single_operations"
SPEC = Spec(
    name="layernorm",
    task="normalisation",
    inputs=(Tensor("hidden", ("batch", ROWS, FEATURES), Normal(1.0, mean=0.5)),),
    outputs=(Tensor("normed", ("batch", ROWS, FEATURES), Constant(0.0)),),
    weights=(
        Weight("norm.weight", (FEATURES,), Uniform(0.5, 1.5)),
        Weight("norm.bias", (FEATURES,), Normal(0.2)),
    ),
    parameters=1_536,
    gmacs_per_item=None,
    # The mean, the difference, its square and their sum, the scale, the weight and the bias.
    operations_per_item=7.0 * ROWS * FEATURES,
    published="arithmetic: two weights for each of 768 features, and seven operations for each element",
)
