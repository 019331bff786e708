"""The triad as a Paddle layer."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.paddle_weights import with_weights
from fairlap.bench_models.triad.spec import SCALE
from fairlap.models.arrays import Arrays
from paddle import nn


class Triad(nn.Layer):
    def forward(self, left: Any, right: Any) -> tuple[Any]:
        return (left + SCALE * right,)


def build(weights: Arrays) -> Any:
    return with_weights(Triad(), weights)


def canonical(name: str, array: Any) -> Any:
    return array
