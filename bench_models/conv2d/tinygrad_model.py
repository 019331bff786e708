"""The convolution in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.conv2d.spec import PADDING
from fairlap.models.arrays import Arrays
from tinygrad import Tensor


class Convolution:
    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __call__(self, image: Any) -> tuple[Any]:
        return (image.conv2d(self.kernel, padding=PADDING),)


def build(weights: Arrays) -> Convolution:
    return Convolution(Tensor(weights["kernel"]).realize())
