"""The net as a Paddle layer."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convnet.spec import STRIDES, channels_of, classes_of
from fairlap.bench_models.paddle_weights import turned, with_weights
from fairlap.models.arrays import Arrays
from paddle import nn


class ConvNet(nn.Layer):
    def __init__(self, channels: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.conv0, self.conv1, self.conv2 = (
            nn.Conv2D(channels[number], channels[number + 1], 3, stride, padding=1)
            for number, stride in enumerate(STRIDES)
        )
        self.head = nn.Linear(channels[-1], classes)

    def forward(self, image: Any) -> tuple[Any]:
        hidden = nn.functional.relu(self.conv0(image))
        hidden = nn.functional.relu(self.conv1(hidden))
        hidden = nn.functional.relu(self.conv2(hidden))
        return (self.head(hidden.mean(axis=(2, 3))),)


def build(weights: Arrays) -> Any:
    return with_weights(
        ConvNet(channels_of(weights), classes_of(weights)), {name: turned(array) for name, array in weights.items()}
    )


def canonical(name: str, array: Any) -> Any:
    return turned(array)
