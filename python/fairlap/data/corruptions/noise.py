"""Noise: of electronics, of few photons, of dead pixels, and in proportion to the light."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.float64]
"""Height, width and channels, from 0 to 1."""


def gaussian_noise(image: Image, deviation: float, drawn: np.random.Generator) -> Image:
    return image + drawn.normal(0, deviation, image.shape)


def shot_noise(image: Image, photons: float, drawn: np.random.Generator) -> Image:
    return drawn.poisson(image * photons) / photons


def impulse_noise(image: Image, share: float, drawn: np.random.Generator) -> Image:
    """Half of what is hit is white, half is black."""
    hit, white = drawn.random(image.shape) < share, drawn.random(image.shape) < 0.5
    return np.where(hit, white.astype(np.float64), image)


def speckle_noise(image: Image, deviation: float, drawn: np.random.Generator) -> Image:
    return image * (1 + drawn.normal(0, deviation, image.shape))
