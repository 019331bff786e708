"""Metrics of images that a model makes: PSNR and SSIM by scikit-image, each the mean over the images.

Values go from 0 to 1, or to the number after the @, as in ``ssim@255``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from fairlap.models.array_files.npy_map import pieces_of
from fairlap.models.metrics.metric import Array, Output, Package, Parts, TaskMetric, other_shape, ratio, refuse

_CHANNELS = (1, 3)
_WINDOW, _SIGMA = 11, 1.5  # of Wang and others (2004), "Image quality assessment"


def _require_images(text: str, labels: Array, outputs: Sequence[Output], brightest: int) -> None:
    [output] = outputs
    if brightest < 1:
        raise refuse(f"{text}: images go from 0 to 1 or more (got {brightest})")
    if len(output.shape) not in (3, 4) or _channel_axis(output.shape) == 0:
        raise refuse(
            f"{text} takes an output of images, [items, 1 or 3, height, width], [items, height, width, 1 or 3] or "
            f"[items, height, width]; {output.name} is {list(output.shape)}"
        )
    if labels.shape[1:] != output.shape[1:] or labels.dtype.kind not in "biuf":
        raise other_shape(text, labels, output, output.shape[1:], "images")
    if not all(((piece >= 0) & (piece <= brightest)).all() for piece in pieces_of(labels)):
        raise refuse(f"{text} takes labels from 0 to {brightest}; others are scored by {text.partition('@')[0]}@NUMBER")


def _require_windows(text: str, labels: Array, outputs: Sequence[Output], brightest: int) -> None:
    _require_images(text, labels, outputs, brightest)
    shape = outputs[0].shape
    axis = _channel_axis(shape)
    if min(size for place, size in enumerate(shape) if place not in (0, axis)) < _WINDOW:
        raise refuse(f"{text} compares windows of {_WINDOW} by {_WINDOW} pixels; the images are {list(shape[1:])}")


def _channel_axis(shape: Sequence[int]) -> int | None:
    """Find it; None where there is none, and 0 for other shapes."""
    if len(shape) == 3:
        return None
    return next((axis for axis in (1, 3) if len(shape) == 4 and shape[axis] in _CHANNELS), 0)


def _noise_ratios(outputs: Array, labels: Array, brightest: int) -> Parts:
    """In decibels. Of equal images it is infinite, and has no mean."""
    from skimage.metrics import peak_signal_noise_ratio

    both = zip(labels.astype(np.float64), outputs.astype(np.float64), strict=True)
    with np.errstate(divide="ignore"):
        found = [peak_signal_noise_ratio(right, given, data_range=brightest) for right, given in both]
    return np.array(found), np.ones(len(found))


def _similarities(outputs: Array, labels: Array, brightest: int) -> Parts:
    from skimage.metrics import structural_similarity

    axis = _channel_axis(outputs.shape)
    settings = {"gaussian_weights": True, "sigma": _SIGMA, "use_sample_covariance": False, "data_range": brightest}
    found = [
        structural_similarity(right, given, channel_axis=None if axis is None else axis - 1, **settings)
        for right, given in zip(labels.astype(np.float64), outputs.astype(np.float64), strict=True)
    ]
    return np.array(found), np.ones(len(found))


_PACKAGE = Package("skimage", "scikit-image", "image-metrics")


def _psnr(brightest: int) -> TaskMetric:
    meaning = "peak signal-to-noise ratio in decibels, the mean over images"
    return TaskMetric(meaning, partial(_require_images, brightest=brightest),
                      partial(_noise_ratios, brightest=brightest), ratio, _PACKAGE)  # fmt: skip


def _ssim(brightest: int) -> TaskMetric:
    meaning = "structural similarity, the mean over images"
    return TaskMetric(meaning, partial(_require_windows, brightest=brightest),
                      partial(_similarities, brightest=brightest), ratio, _PACKAGE, best_is_1=True)  # fmt: skip


FAMILIES: Mapping[str, Callable[[int], TaskMetric]] = {"psnr": _psnr, "ssim": _ssim}
METRICS: Mapping[str, TaskMetric] = {name: of(1) for name, of in FAMILIES.items()}
