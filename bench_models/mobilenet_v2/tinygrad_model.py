"""MobileNetV2 in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.tinygrad_unit import convolution, normalisation, with_weights
from fairlap.bench_models.mobilenet_v2.spec import CLASSES, FEATURES, STAGES
from fairlap.models.arrays import Arrays
from tinygrad import Tensor, nn


def convolution_with_relu6(inward: int, outward: int, kernel: int, stride: int = 1, groups: int = 1) -> list[Any]:
    return [convolution(inward, outward, kernel, stride, groups), normalisation(outward), Tensor.relu6]


class InvertedResidual:
    def __init__(self, inward: int, outward: int, expansion: int, stride: int) -> None:
        hidden = inward * expansion
        self.residual = stride == 1 and inward == outward
        layers = [convolution_with_relu6(inward, hidden, 1)] if expansion != 1 else []
        layers.append(convolution_with_relu6(hidden, hidden, 3, stride, groups=hidden))
        self.conv = [*layers, convolution(hidden, outward, 1), normalisation(outward)]

    def __call__(self, image: Any) -> Any:
        hidden = image
        for layer in self.conv:
            hidden = hidden.sequential(layer) if isinstance(layer, list) else layer(hidden)
        return image + hidden if self.residual else hidden


class MobileNetV2:
    def __init__(self) -> None:
        inward = 32
        self.features: list[Any] = [convolution_with_relu6(3, inward, 3, stride=2)]
        for expansion, outward, count, stride in STAGES:
            for number in range(count):
                self.features.append(InvertedResidual(inward, outward, expansion, stride if number == 0 else 1))
                inward = outward
        self.features.append(convolution_with_relu6(inward, FEATURES, 1))
        self.classifier = [Tensor.dropout, nn.Linear(FEATURES, CLASSES)]

    def __call__(self, image: Any) -> tuple[Any]:
        first, *blocks, last = self.features
        features = image.sequential([*first, *blocks, *last]).mean((2, 3))
        return (features.sequential(self.classifier),)


def build(weights: Arrays) -> Any:
    return with_weights(MobileNetV2(), weights)
