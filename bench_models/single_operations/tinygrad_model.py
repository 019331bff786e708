"""The operations in tinygrad."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from fairlap.bench_models.conv2d.spec import PADDING
from fairlap.bench_models.layernorm.spec import EPSILON, FEATURES
from fairlap.bench_models.triad.spec import SCALE
from fairlap.models.arrays import Arrays
from tinygrad import Tensor, nn


class OnWeights:
    """Each weight is an attribute of its name, by which tinygrad lists them."""

    def __init__(self, weights: Arrays) -> None:
        for name, array in weights.items():
            setattr(self, name, Tensor(array).realize())


class Attention(OnWeights):
    key: Any
    value: Any

    def __call__(self, query: Any) -> tuple[Any]:
        return (query.scaled_dot_product_attention(self.key, self.value),)


class Conv2d(OnWeights):
    kernel: Any

    def __call__(self, image: Any) -> tuple[Any]:
        return (image.conv2d(self.kernel, padding=PADDING),)


class Empty(OnWeights):
    def __call__(self, some: Any) -> tuple[Any]:
        return (some + 1,)


class Gemm(OnWeights):
    right: Any

    def __call__(self, left: Any) -> tuple[Any]:
        return (left @ self.right,)


class LayerNorm:
    def __init__(self, weights: Arrays) -> None:
        self.norm = nn.LayerNorm(FEATURES, EPSILON)
        nn.state.load_state_dict(self, {name: Tensor(array) for name, array in weights.items()}, verbose=False)

    def __call__(self, hidden: Any) -> tuple[Any]:
        return (self.norm(hidden),)


class Softmax(OnWeights):
    def __call__(self, scores: Any) -> tuple[Any]:
        return (scores.softmax(-1),)


class Triad(OnWeights):
    def __call__(self, left: Any, right: Any) -> tuple[Any]:
        return (left + SCALE * right,)


_OPERATIONS = {each.__name__.lower(): each for each in (Attention, Conv2d, Empty, Gemm, LayerNorm, Softmax, Triad)}


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._operation = _OPERATIONS[spec.SPEC.name]

    def build(self, weights: Arrays) -> Any:
        return self._operation(weights)
