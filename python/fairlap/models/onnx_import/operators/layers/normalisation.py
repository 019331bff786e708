"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlap.models.onnx_import.operators.registry import operator


@operator(
    "BatchNormalization",
    layout="spatial",
    reads=("momentum", "spatial"),
    refuse=lambda attributes: "training updates statistics" if attributes.get("training_mode") else None,
    folds=False,
)
def batch_normalization(
    library: Any,
    image: Any,
    scale: Any,
    shift: Any,
    mean: Any,
    variance: Any,
    *,
    epsilon: float = 1e-5,
    training_mode: int = 0,
) -> Any:
    return library.batch_norm(image, scale, shift, mean, variance, epsilon)


@operator("BatchNormalizationInTraining", layout="spatial", reads=("spatial", "training_mode"), folds=False)
def batch_normalization_in_training(
    library: Any,
    image: Any,
    scale: Any,
    shift: Any,
    mean: Any,
    variance: Any,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
) -> Any:
    """Return the new averages too."""
    return library.batch_norm_of_batch(image, scale, shift, mean, variance, epsilon, momentum)


@operator("LayerNormalization", reads=("stash_type",))
def layer_normalization(
    library: Any,
    value: Any,
    scale: Any,
    shift: Any = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    count: int,
) -> Any:
    axis %= len(value.shape)
    if count == 1:
        return library.layer_norm(value, scale, shift, axis, epsilon)
    axes = tuple(range(axis, len(value.shape)))
    mean = library.reduce("mean", value, axes, True)
    centred = value - mean
    inverse = 1 / library.apply("Sqrt", library.reduce("mean", centred * centred, axes, True) + epsilon)
    result = centred * inverse * scale
    return result if shift is None else result + shift, mean, inverse


@operator("RMSNormalization", reads=("stash_type",))
def rms_normalization(library: Any, value: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5) -> Any:
    return library.rms_norm(value, scale, axis % len(value.shape), epsilon)


@operator("InstanceNormalization", layout="spatial", folds=False)
def instance_normalization(library: Any, image: Any, scale: Any, shift: Any, *, epsilon: float = 1e-5) -> Any:
    rank = len(image.shape) - 2
    first = 1 if library.channels_last else 2
    standard = _standard(library, image, tuple(range(first, first + rank)), epsilon)
    return standard * library.per_channel(scale, rank) + library.per_channel(shift, rank)


@operator("GroupNormalization", layout="spatial", reads=("stash_type",), folds=False)
def group_normalization(
    library: Any,
    image: Any,
    scale: Any,
    shift: Any,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    opset: int,
) -> Any:
    """Scale and shift are per group before opset 21, per channel since."""
    channels = image.shape[-1 if library.channels_last else 1]
    if opset < 21 and scale.shape[0] == num_groups:
        each = channels // num_groups
        scale, shift = (
            library.reshape(library.broadcast(library.reshape(part, (-1, 1)), (num_groups, each)), (-1,))
            for part in (scale, shift)
        )
    return library.group_norm(image, scale, shift, num_groups, epsilon)


@operator("MeanVarianceNormalization")
def mean_variance_normalization(library: Any, value: Any, *, axes: Sequence[int] = (0, 2, 3)) -> Any:
    chosen = tuple(axis % len(value.shape) for axis in axes)
    centred = value - library.reduce("mean", value, chosen, True)
    deviation = library.apply("Sqrt", library.reduce("mean", centred * centred, chosen, True))
    return centred / (deviation + 1e-9)


def _standard(library: Any, value: Any, axes: Sequence[int], epsilon: float) -> Any:
    centred = value - library.reduce("mean", value, tuple(axes), True)
    variance = library.reduce("mean", centred * centred, tuple(axes), True)
    return centred / library.apply("Sqrt", variance + epsilon)
