"""The convolution as a Paddle layer."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.conv2d.spec import INWARD, KERNEL, OUTWARD, PADDING
from fairlap.bench_models.paddle_weights import with_weights
from fairlap.models.arrays import Arrays
from paddle import nn


class Convolution(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.kernel = self.create_parameter((OUTWARD, INWARD, KERNEL, KERNEL))

    def forward(self, image: Any) -> tuple[Any]:
        return (nn.functional.conv2d(image, self.kernel, padding=PADDING),)


def build(weights: Arrays) -> Any:
    return with_weights(Convolution(), weights)


def canonical(name: str, array: Any) -> Any:
    return array
