"""The operations as Gluon blocks."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from fairlap.bench_models.attention.spec import HEADS, QUERIES, SCALE, SIZE
from fairlap.bench_models.conv2d.spec import KERNEL, OUTWARD, PADDING
from fairlap.bench_models.layernorm.spec import EPSILON, FEATURES
from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.bench_models.triad.spec import SCALE as TRIAD_SCALE
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock, nn


class OnWeights(HybridBlock):
    """Each weight is a parameter of its name, which Gluon hands to ``hybrid_forward``."""

    def __init__(self, weights: Arrays) -> None:
        super().__init__()
        for name, array in weights.items():
            setattr(self, name, self.params.get(name, shape=array.shape))


class Attention(OnWeights):
    """Attends with the queries of all items as the rows of one matrix, since a batched product broadcasts nothing.

    ``gemm2`` scales on the way, and where cores were scarce took a tenth of the time of ``batch_dot``.
    """

    def hybrid_forward(self, F: Any, query: Any, key: Any, value: Any) -> tuple[Any]:
        rows = F.swapaxes(query, 0, 1).reshape((HEADS, -1, SIZE))
        scores = F.linalg.gemm2(rows, key, transpose_b=True, alpha=SCALE)
        attended = F.linalg.gemm2(F.softmax(scores, axis=-1), value)
        return (F.swapaxes(attended.reshape((HEADS, -1, QUERIES, SIZE)), 0, 1),)


class Conv2d(OnWeights):
    def hybrid_forward(self, F: Any, image: Any, kernel: Any) -> tuple[Any]:
        size, edge = (KERNEL, KERNEL), (PADDING, PADDING)
        return (F.Convolution(image, kernel, kernel=size, pad=edge, num_filter=OUTWARD, no_bias=True),)


class Empty(OnWeights):
    def hybrid_forward(self, F: Any, some: Any) -> tuple[Any]:
        return (some + 1,)


class Gemm(OnWeights):
    def hybrid_forward(self, F: Any, left: Any, right: Any) -> tuple[Any]:
        return (F.dot(left, right),)


class LayerNorm(HybridBlock):
    def __init__(self, _weights: Arrays) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(epsilon=EPSILON, in_channels=FEATURES)

    def hybrid_forward(self, F: Any, hidden: Any) -> tuple[Any]:
        return (self.norm(hidden),)


class Softmax(OnWeights):
    def hybrid_forward(self, F: Any, scores: Any) -> tuple[Any]:
        return (F.softmax(scores, axis=-1),)


class Triad(OnWeights):
    def hybrid_forward(self, F: Any, left: Any, right: Any) -> tuple[Any]:
        return (left + TRIAD_SCALE * right,)


_OPERATIONS = {each.__name__.lower(): each for each in (Attention, Conv2d, Empty, Gemm, LayerNorm, Softmax, Triad)}


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._operation = _OPERATIONS[spec.SPEC.name]

    def build(self, weights: Arrays) -> Any:
        return with_weights(self._operation(weights), weights)
