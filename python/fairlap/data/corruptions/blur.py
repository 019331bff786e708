"""Blur: of a lens that is out of focus, and of a camera that moves or zooms."""

from __future__ import annotations

import numpy as np

from fairlap.data.corruptions.noise import Image

_SMALL_RADIUS = 8  # of discs whose kernel has one size
_LARGEST_ANGLE = 45.0  # degrees
_FEWEST_ZOOMED = 2  # pixels of a side


def gaussian_blur(image: Image, deviation: float, _: np.random.Generator) -> Image:
    from scipy.ndimage import gaussian_filter  # type: ignore[import-untyped,unused-ignore]

    blurred: Image = gaussian_filter(image, (deviation, deviation, 0), mode="nearest", truncate=4.0)
    return blurred


def defocus_blur(image: Image, lens: tuple[float, float], _: np.random.Generator) -> Image:
    from scipy.ndimage import correlate

    blurred: Image = correlate(image, disc(*lens)[..., None], mode="mirror")
    return blurred


def disc(radius: float, deviation: float) -> Image:
    """Weights of a disc whose edge is smoothed."""
    from scipy.ndimage import correlate1d

    reach = _SMALL_RADIUS if radius <= _SMALL_RADIUS else int(radius)
    x, y = np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1))
    weights = (x**2 + y**2 <= radius**2).astype(np.float64)
    weights /= weights.sum()
    edge = 1 if radius <= _SMALL_RADIUS else 2
    smoothing = np.exp(-(np.arange(-edge, edge + 1) ** 2) / (2 * deviation**2))
    smoothing /= smoothing.sum()
    for axis in (0, 1):
        weights = correlate1d(weights, smoothing, axis=axis, mode="mirror")
    return weights


def motion_blur(image: Image, motion: tuple[int, float], drawn: np.random.Generator) -> Image:
    """Move it along one direction: what comes in at an edge is what was there."""
    radius, deviation = motion
    return moved(image, 2 * radius + 1, deviation, drawn.uniform(-_LARGEST_ANGLE, _LARGEST_ANGLE))


def moved(image: Image, steps: int, deviation: float, angle: float) -> Image:
    weights = np.exp(-(np.arange(steps) ** 2) / (2 * deviation**2))
    weights /= weights.sum()
    down, across = np.sin(np.deg2rad(angle)), np.cos(np.deg2rad(angle))
    found = np.zeros_like(image)
    for step, weight in enumerate(weights):
        rows, columns = (
            np.clip(np.arange(size) + int(np.ceil(step * along - 0.5)), 0, size - 1)
            for size, along in zip(image.shape[:2], (down, across), strict=True)
        )
        found += weight * image[rows][:, columns]
    return found


def zoom_blur(image: Image, zoom: tuple[float, float], _: np.random.Generator) -> Image:
    """Take the mean of the image itself and of its middle at several magnifications."""
    end, step = zoom
    factors = np.arange(1, end, step)
    total = image.copy()
    for factor in factors:
        layer = _middle_enlarged(image, float(factor))
        total[: layer.shape[0], : layer.shape[1]] += layer
    return total / (len(factors) + 1)


def _middle_enlarged(image: Image, factor: float) -> Image:
    from scipy.ndimage import zoom

    height, width = image.shape[:2]
    inner = [max(_FEWEST_ZOOMED, int(np.ceil(size / factor))) for size in (height, width)]
    top, left = (height - inner[0]) // 2, (width - inner[1]) // 2
    layer = zoom(image[top : top + inner[0], left : left + inner[1]], (factor, factor, 1), order=1)
    top, left = (max(0, layer.shape[axis] - size) // 2 for axis, size in ((0, height), (1, width)))
    trimmed: Image = layer[top : top + height, left : left + width]
    return trimmed
