"""The operations as Paddle layers."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import paddle
from fairlap.bench_models.attention.spec import SCALE
from fairlap.bench_models.conv2d.spec import PADDING
from fairlap.bench_models.layernorm.spec import EPSILON, FEATURES
from fairlap.bench_models.paddle_weights import with_weights
from fairlap.bench_models.triad.spec import SCALE as TRIAD_SCALE
from fairlap.models.arrays import Arrays
from paddle import nn
from paddle.nn import functional


class OnWeights(nn.Layer):
    """Each weight is a parameter of its name."""

    def __init__(self, weights: Arrays) -> None:
        super().__init__()
        for name, array in weights.items():
            setattr(self, name, self.create_parameter(array.shape))


class Attention(OnWeights):
    """Attention by products.

    Paddle's own attention wants heads behind positions, and on a CPU does nothing but turn them and these same
    products.
    """

    def forward(self, query: Any) -> tuple[Any]:
        scores = paddle.matmul(query * SCALE, self.key, transpose_y=True)
        return (paddle.matmul(functional.softmax(scores, axis=-1), self.value),)


class Conv2d(OnWeights):
    def forward(self, image: Any) -> tuple[Any]:
        return (functional.conv2d(image, self.kernel, padding=PADDING),)


class Empty(OnWeights):
    def forward(self, some: Any) -> tuple[Any]:
        return (some + 1,)


class Gemm(OnWeights):
    def forward(self, left: Any) -> tuple[Any]:
        return (paddle.matmul(left, self.right),)


class LayerNorm(nn.Layer):
    def __init__(self, _weights: Arrays) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(FEATURES, EPSILON)

    def forward(self, hidden: Any) -> tuple[Any]:
        return (self.norm(hidden),)


class Softmax(OnWeights):
    def forward(self, scores: Any) -> tuple[Any]:
        return (functional.softmax(scores, axis=-1),)


class Triad(OnWeights):
    def forward(self, left: Any, right: Any) -> tuple[Any]:
        return (left + TRIAD_SCALE * right,)


_OPERATIONS = {each.__name__.lower(): each for each in (Attention, Conv2d, Empty, Gemm, LayerNorm, Softmax, Triad)}


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._operation = _OPERATIONS[spec.SPEC.name]

    def build(self, weights: Arrays) -> Any:
        return with_weights(self._operation(weights), weights)

    def canonical(self, _name: str, array: Any) -> Any:
        return array
