"""The net as a Paddle layer."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.paddle_unit import BatchNorm2D
from fairlap.bench_models.mnist.spec import CLASSES, FEATURES, STAGES
from fairlap.bench_models.paddle_weights import turned, with_weights
from fairlap.models.arrays import Arrays
from paddle import nn
from paddle.nn import functional


class BasicBlock(nn.Layer):
    def __init__(self, inward: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2D(inward, width, 3, stride, padding=1, bias_attr=False)
        self.bn1 = BatchNorm2D(width)
        self.conv2 = nn.Conv2D(width, width, 3, padding=1, bias_attr=False)
        self.bn2 = BatchNorm2D(width)
        self.downsample: Any = None
        if stride != 1 or inward != width:
            convolution = nn.Conv2D(inward, width, 1, stride, bias_attr=False)
            self.downsample = nn.Sequential(convolution, BatchNorm2D(width))

    def forward(self, image: Any) -> Any:
        shortcut = image if self.downsample is None else self.downsample(image)
        hidden = functional.relu(self.bn1(self.conv1(image)))
        return functional.relu(self.bn2(self.conv2(hidden)) + shortcut)


class ResNet(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        inward = STAGES[0][0]
        self.conv1 = nn.Conv2D(1, inward, 3, 2, padding=1, bias_attr=False)
        self.bn1 = BatchNorm2D(inward)
        self.stages: list[Any] = []
        for number, (width, stride) in enumerate(STAGES, start=1):
            self.stages.append(self.add_sublayer(f"layer{number}", BasicBlock(inward, width, stride)))
            inward = width
        self.fc = nn.Linear(FEATURES, CLASSES)

    def forward(self, image: Any) -> tuple[Any]:
        hidden = functional.relu(self.bn1(self.conv1(image)))
        for stage in self.stages:
            hidden = stage(hidden)
        return (self.fc(hidden.mean(axis=(2, 3))),)


def build(weights: Arrays) -> Any:
    return with_weights(ResNet(), {name: turned(array) for name, array in weights.items()})


def canonical(name: str, array: Any) -> Any:
    return turned(array)
