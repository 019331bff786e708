"""MobileNetV2 as a Gluon block."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.mxnet_unit import convolution, normalisation, sequence
from fairlap.bench_models.mobilenet_v2.spec import CLASSES, FEATURES, STAGES
from fairlap.bench_models.mxnet_weights import with_weights
from fairlap.models.arrays import Arrays
from mxnet.gluon import HybridBlock, nn


class ReLU6(HybridBlock):
    def hybrid_forward(self, F: Any, hidden: Any) -> Any:
        return F.clip(hidden, 0, 6)


def convolution_with_relu6(inward: int, outward: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
    return sequence(convolution(inward, outward, kernel, stride, groups), normalisation(outward), ReLU6())


class InvertedResidual(HybridBlock):
    def __init__(self, inward: int, outward: int, expansion: int, stride: int) -> None:
        super().__init__()
        hidden = inward * expansion
        self.residual = stride == 1 and inward == outward
        layers = [convolution_with_relu6(inward, hidden, 1)] if expansion != 1 else []
        layers += [
            convolution_with_relu6(hidden, hidden, 3, stride, groups=hidden),
            convolution(hidden, outward, 1),
            normalisation(outward),
        ]
        self.conv = sequence(*layers)

    def hybrid_forward(self, F: Any, image: Any) -> Any:
        return image + self.conv(image) if self.residual else self.conv(image)


class MobileNetV2(HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        inward = 32
        layers = [convolution_with_relu6(3, inward, 3, stride=2)]
        for expansion, outward, count, stride in STAGES:
            for number in range(count):
                layers.append(InvertedResidual(inward, outward, expansion, stride if number == 0 else 1))
                inward = outward
        self.features = sequence(*layers, convolution_with_relu6(inward, FEATURES, 1))
        self.average = nn.GlobalAvgPool2D()
        no_dropout = nn.Dropout(0.0)  # holds the place that gives the next layer its name
        self.classifier = sequence(no_dropout, nn.Dense(CLASSES, in_units=FEATURES))

    def hybrid_forward(self, F: Any, image: Any) -> tuple[Any]:
        return (self.classifier(self.average(self.features(image))),)


def build(weights: Arrays) -> Any:
    return with_weights(MobileNetV2(), weights)
