"""A ResNet in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.tinygrad_unit import convolution, normalisation, with_weights
from fairlap.bench_models.convolution.units import Unit
from fairlap.bench_models.resnet.spec import CLASSES, STEM, Block, ResNet
from fairlap.models.arrays import Arrays
from tinygrad import nn


def _convolution(unit: Unit) -> Any:
    return convolution(unit.inward, unit.outward, unit.kernel, unit.stride)


class Residual:
    def __init__(self, block: Block) -> None:
        for number, unit in enumerate(block.path, start=1):
            setattr(self, f"conv{number}", _convolution(unit))
            setattr(self, f"bn{number}", normalisation(unit.outward))
        self.convolutions = len(block.path)
        self.downsample: list[Any] = []
        if block.shortcut:
            self.downsample = [_convolution(block.shortcut), normalisation(block.shortcut.outward)]

    def __call__(self, image: Any) -> Any:
        hidden = image
        for number in range(1, self.convolutions + 1):
            hidden = hidden.relu() if number > 1 else hidden
            hidden = getattr(self, f"bn{number}")(getattr(self, f"conv{number}")(hidden))
        return (hidden + image.sequential(self.downsample)).relu()


class Network:
    def __init__(self, network: ResNet) -> None:
        self.conv1, self.bn1 = _convolution(STEM), normalisation(STEM.outward)
        self.layer1, self.layer2, self.layer3, self.layer4 = ([*map(Residual, stage)] for stage in network.stages)
        self.fc = nn.Linear(network.features, CLASSES)

    def __call__(self, image: Any) -> tuple[Any]:
        hidden = self.bn1(self.conv1(image)).relu().max_pool2d(3, 2, padding=1)
        hidden = hidden.sequential([*self.layer1, *self.layer2, *self.layer3, *self.layer4])
        return (self.fc(hidden.mean((2, 3))),)


class Implementation:
    def __init__(self, network: ResNet) -> None:
        self._network = network

    def build(self, weights: Arrays) -> Any:
        return with_weights(Network(self._network), weights)
