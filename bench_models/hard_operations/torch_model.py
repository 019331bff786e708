"""The operations as PyTorch modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from fairlap.bench_models.hard_operations import EPSILON
from fairlap.models.arrays import Arrays
from fairlap.models.operations.hard import Hard
from torch import nn

Function = Callable[..., Any]


class Computed(nn.Module):
    """Weights are parameters of their names, and come before the inputs."""

    def __init__(self, function: Function, weights: Arrays) -> None:
        super().__init__()
        self.function = function
        for name, array in weights.items():
            self.register_parameter(name, nn.Parameter(torch.tensor(array)))


class OfRows(Computed):
    def forward(self, numbers: Any) -> tuple[Any]:
        return (self.function(numbers),)


class OfPairs(Computed):
    def forward(self, a: Any, b: Any) -> tuple[Any]:
        return (self.function(a, b),)


class OfColumns(Computed):
    a: Any

    def forward(self, b: Any) -> tuple[Any]:
        return (self.function(self.a, b),)


class OfHeads(Computed):
    def forward(self, query: Any, key: Any, value: Any) -> tuple[Any]:
        return (self.function(query, key, value),)


_KINDS: Mapping[tuple[str, ...], type[Computed]] = {
    ("numbers",): OfRows,
    ("a", "b"): OfPairs,
    ("b",): OfColumns,
    ("query", "key", "value"): OfHeads,
}
_FUNCTIONS: Mapping[str, Function] = {
    "sum": lambda numbers: numbers.sum(-1),
    "dot": torch.linalg.vecdot,
    "matmul": lambda a, b: torch.matmul(a, b.t()),
    "solve": torch.linalg.solve,
    "softmax": lambda numbers: torch.softmax(numbers, -1),
    "logsumexp": lambda numbers: torch.logsumexp(numbers, -1),
    "layernorm": lambda numbers: nn.functional.layer_norm(numbers, numbers.shape[-1:], eps=EPSILON),
    "variance": lambda numbers: torch.var(numbers, -1, correction=0),
    "attention": nn.functional.scaled_dot_product_attention,
    "subnormal": lambda numbers: numbers * 0.5,
    "special-max": lambda numbers: torch.amax(numbers, -1),
    "special-softmax": lambda numbers: torch.softmax(numbers, -1),
    "special-sort": lambda numbers: torch.sort(numbers, -1).values,
}


class Implementation:
    def __init__(self, operation: Hard) -> None:
        self._operation = operation

    def build(self, weights: Arrays) -> Any:
        kind = _KINDS[tuple(tensor.name for tensor in self._operation.inputs)]
        return kind(_FUNCTIONS[self._operation.function], weights).eval()
