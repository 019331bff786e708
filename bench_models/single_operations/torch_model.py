"""The operations as PyTorch modules."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from fairlap.bench_models.conv2d.spec import PADDING
from fairlap.bench_models.layernorm.spec import EPSILON, FEATURES
from fairlap.bench_models.triad.spec import SCALE
from fairlap.models.arrays import Arrays
from torch import nn
from torch.nn import functional


class OnWeights(nn.Module):
    """Each weight is a parameter of its name."""

    def __init__(self, weights: Arrays) -> None:
        super().__init__()
        for name, array in weights.items():
            self.register_parameter(name, nn.Parameter(torch.tensor(array)))


class Attention(OnWeights):
    def forward(self, query: Any) -> tuple[Any]:
        key, value = (memory.expand(len(query), -1, -1, -1) for memory in (self.key, self.value))
        return (functional.scaled_dot_product_attention(query, key, value),)


class Conv2d(OnWeights):
    def forward(self, image: Any) -> tuple[Any]:
        return (functional.conv2d(image, self.kernel, padding=PADDING),)


class Empty(OnWeights):
    def forward(self, some: Any) -> tuple[Any]:
        return (some + 1,)


class Gemm(OnWeights):
    def forward(self, left: Any) -> tuple[Any]:
        return (torch.matmul(left, self.right),)


class LayerNorm(nn.Module):
    def __init__(self, weights: Arrays) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(FEATURES, EPSILON)
        self.load_state_dict({name: torch.tensor(array) for name, array in weights.items()})

    def forward(self, hidden: Any) -> tuple[Any]:
        return (self.norm(hidden),)


class Softmax(OnWeights):
    def forward(self, scores: Any) -> tuple[Any]:
        return (torch.softmax(scores, dim=-1),)


class Triad(OnWeights):
    """In the one operation that PyTorch has for it."""

    def forward(self, left: Any, right: Any) -> tuple[Any]:
        return (torch.add(left, right, alpha=SCALE),)


_OPERATIONS = {each.__name__.lower(): each for each in (Attention, Conv2d, Empty, Gemm, LayerNorm, Softmax, Triad)}


class Implementation:
    def __init__(self, spec: ModuleType) -> None:
        self._operation = _OPERATIONS[spec.SPEC.name]

    def build(self, weights: Arrays) -> Any:
        return self._operation(weights).eval()
