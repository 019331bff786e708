"""The net in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convnet.spec import STRIDES, channels_of, classes_of
from fairlap.models.arrays import Arrays
from tinygrad import Tensor, nn


class ConvNet:
    def __init__(self, channels: tuple[int, ...], classes: int) -> None:
        self.conv0, self.conv1, self.conv2 = (
            nn.Conv2d(channels[number], channels[number + 1], 3, stride, padding=1)
            for number, stride in enumerate(STRIDES)
        )
        self.head = nn.Linear(channels[-1], classes)

    def __call__(self, image: Any) -> tuple[Any]:
        hidden = image
        for layer in (self.conv0, self.conv1, self.conv2):
            hidden = layer(hidden).relu()
        return (self.head(hidden.mean((2, 3))),)


def build(weights: Arrays) -> ConvNet:
    model = ConvNet(channels_of(weights), classes_of(weights))
    nn.state.load_state_dict(model, {name: Tensor(array) for name, array in weights.items()}, verbose=False)
    return model
