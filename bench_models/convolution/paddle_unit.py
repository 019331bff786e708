"""Batch normalisation in Paddle, for the models that train."""

from __future__ import annotations

from typing import Any

import paddle
from fairlap.bench_models.convolution.units import EPSILON, MOMENTUM
from paddle import nn


class BatchNorm2D(nn.BatchNorm2D):
    """Batch normalisation that moves the variance of a sample, as the other frameworks do.

    That is divided by one less than the number of pixels. Paddle's own moves the variance of the batch, which is
    smaller.
    """

    def __init__(self, features: int) -> None:
        super().__init__(features, momentum=1 - MOMENTUM, epsilon=EPSILON)

    def forward(self, image: Any) -> Any:
        if not self.training:
            return super().forward(image)
        pixels = image.size // image.shape[1]
        shrunk = self._variance * ((pixels - 1) / pixels)  # moved by Paddle, and then enlarged again with the batch's
        normalised = nn.functional.batch_norm(
            image, self._mean, shrunk, self.weight, self.bias, True, 1 - MOMENTUM, EPSILON
        )
        # Not in place of what was moved, which the backward pass reads.
        paddle.assign(shrunk * (pixels / (pixels - 1)), self._variance)
        return normalised
