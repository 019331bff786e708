"""ResNet-50 in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.tinygrad_unit import convolution, normalisation, with_weights
from fairlap.bench_models.resnet50.spec import CLASSES, EXPANSION, FEATURES, STAGES
from fairlap.models.arrays import Arrays
from tinygrad import nn


class Bottleneck:
    def __init__(self, inward: int, width: int, stride: int) -> None:
        outward = EXPANSION * width
        self.conv1, self.bn1 = convolution(inward, width, 1), normalisation(width)
        self.conv2, self.bn2 = convolution(width, width, 3, stride), normalisation(width)
        self.conv3, self.bn3 = convolution(width, outward, 1), normalisation(outward)
        self.downsample: list[Any] = []
        if stride != 1 or inward != outward:
            self.downsample = [convolution(inward, outward, 1, stride), normalisation(outward)]

    def __call__(self, image: Any) -> Any:
        hidden = self.bn1(self.conv1(image)).relu()
        hidden = self.bn2(self.conv2(hidden)).relu()
        hidden = self.bn3(self.conv3(hidden))
        return (hidden + image.sequential(self.downsample)).relu()


def _stage(inward: int, width: int, count: int, stride: int) -> list[Bottleneck]:
    others = (Bottleneck(EXPANSION * width, width, 1) for _ in range(count - 1))
    return [Bottleneck(inward, width, stride), *others]


class ResNet50:
    def __init__(self) -> None:
        self.conv1, self.bn1 = convolution(3, 64, 7, 2), normalisation(64)
        inputs = (64, *(EXPANSION * width for width, _, _ in STAGES))
        stages = (_stage(inward, *sizes) for inward, sizes in zip(inputs, STAGES, strict=False))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.fc = nn.Linear(FEATURES, CLASSES)

    def __call__(self, image: Any) -> tuple[Any]:
        hidden = self.bn1(self.conv1(image)).relu().max_pool2d(3, 2, padding=1)
        hidden = hidden.sequential([*self.layer1, *self.layer2, *self.layer3, *self.layer4])
        return (self.fc(hidden.mean((2, 3))),)


def build(weights: Arrays) -> Any:
    return with_weights(ResNet50(), weights)
