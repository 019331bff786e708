"""Tricks that compute less, or less exactly, than was asked for."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from fairlap.models.arrays import Arrays
from fairlap.models.draw import rounded_to_bfloat16

from hostile_tricks.honest import Call, Forward, Honest


class HalfBatch(Honest):
    """Computes half of the batch and copies it."""

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        half = {name: array[: (len(array) + 1) // 2] for name, array in inputs.items()}

        def call() -> Any:
            answer = forward(half)
            return {name: np.concatenate([value, value])[: 2 * len(value)] for name, value in answer.items()}

        return call


class EarlyExit(Honest):
    """Stops after the first item of the batch once it is warm."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def bind(self, forward: Forward, inputs: Arrays) -> Call:
        first = {name: array[:1] for name, array in inputs.items()}

        def call() -> Any:
            if next(self._numbers) < 8:
                return forward(inputs)
            size = len(next(iter(inputs.values())))
            return {name: np.repeat(value, size, axis=0) for name, value in forward(first).items()}

        return call


class ZeroWeights(Honest):
    """Drops small weights."""

    def weights(self, weights: dict[str, Any]) -> dict[str, Any]:
        return {name: np.where(np.abs(array) < 0.01, 0, array).astype(np.float32) for name, array in weights.items()}


class SkippedLayer(Honest):
    """Leaves the last normalisation or bias out."""

    def weights(self, weights: dict[str, Any]) -> dict[str, Any]:
        last = list(weights)[-1]
        return {**weights, last: np.zeros_like(weights[last])}


class Bfloat16(Honest):
    """Computes with weights rounded to bfloat16."""

    def weights(self, weights: dict[str, Any]) -> dict[str, Any]:
        return {name: rounded_to_bfloat16(array) for name, array in weights.items()}


class ReplicatePadding(Honest):
    """Repeats the pixels at the edge of an image where zeros should be."""

    def __init__(self) -> None:
        from fairlap.bench_models.convnet import reference

        zeros = reference.convolution

        def convolution(image: Any, kernel: Any, stride: int) -> Any:
            padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
            inner = zeros(padded, kernel, 1)[:, :, 1:-1, 1:-1]
            return inner[:, :, ::stride, ::stride]

        reference.convolution = convolution
