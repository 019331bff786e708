"""Light and colour: too bright, too flat, too much or too little colour, and fog."""

from __future__ import annotations

import numpy as np

from fairlap.data.corruptions.noise import Image

_COLOURS = 3
_WIBBLE = 100.0  # of a map of fog, before its details


def brightness(image: Image, added: float, _: np.random.Generator) -> Image:
    """Add to the value of each pixel's hue, saturation and value. Black becomes grey."""
    if image.shape[2] < _COLOURS:
        return image + added
    value: Image = image.max(axis=2, keepdims=True)
    brighter: Image = np.clip(value + added, 0, 1)
    found: Image = np.where(value > 0, image * (brighter / np.where(value > 0, value, 1)), brighter)
    return found


def contrast(image: Image, factor: float, _: np.random.Generator) -> Image:
    mean: Image = image.mean(axis=(0, 1), keepdims=True)
    flat: Image = (image - mean) * factor + mean
    return flat


def saturate(image: Image, change: tuple[float, float], _: np.random.Generator) -> Image:
    """Change the saturation alone. A pixel without a colour has the hue of red, as in the usual conversion."""
    factor, summand = change
    value, least = image.max(axis=2, keepdims=True), image.min(axis=2, keepdims=True)
    has_colour = value > least
    saturation = np.where(value > 0, (value - least) / np.where(value > 0, value, 1), 0)
    wanted = np.clip(saturation * factor + summand, 0, 1)
    coloured = value - (value - image) * (wanted / np.where(has_colour, saturation, 1))
    red = np.concatenate([value, *2 * [value * (1 - wanted)]], axis=2)
    return np.where(has_colour, coloured, red)


def fog(image: Image, density: tuple[float, float], drawn: np.random.Generator) -> Image:
    amount, decay = density
    height, width = image.shape[:2]
    cloud = fractal(1 << (max(height, width) - 1).bit_length(), decay, drawn)[:height, :width, None]
    lightest = image.max()
    foggy: Image = (image + amount * cloud) * lightest / (lightest + amount)
    return foggy


def fractal(side: int, decay: float, drawn: np.random.Generator) -> Image:
    """Make a map from 0 to 1 by the diamond-square algorithm, whose edges meet; ``side`` is a power of 2."""
    found = np.zeros((side, side))
    step, wibble = side, _WIBBLE

    def middle(around: Image) -> Image:
        """Four neighbours' mean, and a random part that is the smaller the closer they are."""
        return around / 4 + wibble * drawn.uniform(-wibble, wibble, around.shape)

    while step >= 2:
        half = step // 2
        corners = found[::step, ::step]
        pairs = corners + np.roll(corners, -1, axis=0)
        found[half::step, half::step] = middle(pairs + np.roll(pairs, -1, axis=1))
        centres, corners = found[half::step, half::step], found[::step, ::step]
        beside = centres + np.roll(centres, 1, axis=0) + corners + np.roll(corners, -1, axis=1)
        found[::step, half::step] = middle(beside)
        below = centres + np.roll(centres, 1, axis=1) + corners + np.roll(corners, -1, axis=0)
        found[half::step, ::step] = middle(below)
        step, wibble = half, wibble / decay
    found -= found.min()
    scaled: Image = found / max(found.max(), np.finfo(float).tiny)
    return scaled
