"""A ResNet as a Paddle layer."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.units import Unit
from fairlap.bench_models.paddle_weights import turned, with_weights
from fairlap.bench_models.resnet.spec import CLASSES, STEM, Block, ResNet
from fairlap.models.arrays import Arrays
from paddle import nn
from paddle.nn import functional


def _convolution(unit: Unit) -> nn.Conv2D:
    return nn.Conv2D(unit.inward, unit.outward, unit.kernel, unit.stride, padding=unit.padding, bias_attr=False)


class Residual(nn.Layer):
    def __init__(self, block: Block) -> None:
        super().__init__()
        self.path = []
        for number, unit in enumerate(block.path, start=1):
            self.add_sublayer(f"conv{number}", _convolution(unit))
            self.add_sublayer(f"bn{number}", nn.BatchNorm2D(unit.outward))
            self.path.append((f"conv{number}", f"bn{number}"))
        self.downsample: Any = None
        if block.shortcut:
            self.downsample = nn.Sequential(_convolution(block.shortcut), nn.BatchNorm2D(block.shortcut.outward))

    def forward(self, image: Any) -> Any:
        shortcut = image if self.downsample is None else self.downsample(image)
        hidden = image
        for place, (convolution, normalisation) in enumerate(self.path):
            hidden = functional.relu(hidden) if place else hidden
            hidden = getattr(self, normalisation)(getattr(self, convolution)(hidden))
        return functional.relu(hidden + shortcut)


class Network(nn.Layer):
    def __init__(self, network: ResNet) -> None:
        super().__init__()
        self.conv1 = _convolution(STEM)
        self.bn1 = nn.BatchNorm2D(STEM.outward)
        self.pool = nn.MaxPool2D(3, 2, padding=1)
        stages = (nn.Sequential(*map(Residual, stage)) for stage in network.stages)
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.fc = nn.Linear(network.features, CLASSES)

    def forward(self, image: Any) -> tuple[Any]:
        hidden = self.pool(functional.relu(self.bn1(self.conv1(image))))
        hidden = self.layer4(self.layer3(self.layer2(self.layer1(hidden))))
        return (self.fc(functional.adaptive_avg_pool2d(hidden, 1).flatten(1)),)


class Implementation:
    def __init__(self, network: ResNet) -> None:
        self._network = network

    def build(self, weights: Arrays) -> Any:
        return with_weights(Network(self._network), {name: turned(array) for name, array in weights.items()})

    def canonical(self, name: str, array: Any) -> Any:
        return turned(array)
