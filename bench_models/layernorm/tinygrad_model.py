"""Layer normalisation in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.layernorm.spec import EPSILON, FEATURES
from fairlap.models.arrays import Arrays
from tinygrad import Tensor, nn


class LayerNorm:
    def __init__(self) -> None:
        self.norm = nn.LayerNorm(FEATURES, EPSILON)

    def __call__(self, hidden: Any) -> tuple[Any]:
        return (self.norm(hidden),)


def build(weights: Arrays) -> LayerNorm:
    model = LayerNorm()
    nn.state.load_state_dict(model, {name: Tensor(array) for name, array in weights.items()}, verbose=False)
    return model
