"""Load weights into an image network in tinygrad."""

from __future__ import annotations

from typing import Any

from fairlap.bench_models.convolution.units import EPSILON
from fairlap.models.arrays import Arrays
from tinygrad import Tensor, nn


def convolution(inward: int, outward: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
    return nn.Conv2d(inward, outward, kernel, stride, padding=kernel // 2, groups=groups, bias=False)


def normalisation(features: int) -> Any:
    """Without the count of training steps, which is no weight of the model."""
    layer = nn.BatchNorm(features, EPSILON)
    del layer.num_batches_tracked
    return layer


def with_weights(model: Any, weights: Arrays) -> Any:
    """Load the weights, which must be the model's tensors, no more and no fewer."""
    held = nn.state.get_state_dict(model)
    if held.keys() != weights.keys():
        raise ValueError(f"the model and its weights differ in {sorted(held.keys() ^ weights.keys())}")
    nn.state.load_state_dict(model, {name: Tensor(array) for name, array in weights.items()}, verbose=False)
    return model
