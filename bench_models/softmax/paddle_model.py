"""Softmax as a Paddle layer."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.paddle_weights import with_weights
from fairlap.models.arrays import Arrays
from paddle import nn


class Softmax(nn.Layer):
    def forward(self, scores: Any) -> tuple[Any]:
        return (nn.functional.softmax(scores, axis=-1),)


def build(weights: Arrays) -> Any:
    return with_weights(Softmax(), weights)


def canonical(name: str, array: Any) -> Any:
    return array
