"""Three linear layers with GELU and one layer normalisation."""

from __future__ import annotations

from fairlap.models.spec import LEARNS, Constant, Normal, Spec, Tensor, Uniform, Weight

INPUTS, HIDDEN, CLASSES = 784, 256, 10
EPSILON = 1e-5


def _linear(name: str, inward: int, outward: int) -> tuple[Weight, Weight]:
    weight = Weight(f"{name}.weight", (outward, inward), Normal((2 / inward) ** 0.5))
    return weight, Weight(f"{name}.bias", (outward,), Uniform(-0.1, 0.1))


SPEC = Spec(
    name="mlp",
    task="classification",
    inputs=(Tensor("image", ("batch", INPUTS)),),
    outputs=(Tensor("logits", ("batch", CLASSES), Constant(0.0)),),
    weights=(
        *_linear("first", INPUTS, HIDDEN),
        Weight("norm.weight", (HIDDEN,), Uniform(0.5, 1.5)),
        Weight("norm.bias", (HIDDEN,), Uniform(-0.1, 0.1)),
        *_linear("second", HIDDEN, HIDDEN),
        *_linear("third", HIDDEN, CLASSES),
    ),
    parameters=269_834,
    gmacs_per_item=0.0002688,
    published="arithmetic: the sizes of its layers",
    loss="cross_entropy",
    modes=LEARNS,
)
