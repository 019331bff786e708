"""Features of speech as Whisper's models take them: the logarithms of powers in bands that grow as hearing does."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

RATE, WINDOW, HOP = 16_000, 400, 160
LEAST_POWER, RANGE = 1e-10, 8.0  # what is quieter than the loudest by more powers of ten counts as that quiet
_LINEAR_HZ, _LINEAR_MELS = 1000.0, 15.0  # Slaney's mels grow by the logarithm from there
_PER_MEL = math.log(6.4) / 27


def log_mel_frames(sound: Array, frames: int, bands: int) -> Array:
    """Compute one row for each 10 ms; the sound is as long as that many frames, from -1 to 1."""
    padded = np.pad(sound, WINDOW // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP][:frames]
    spectrum = np.fft.rfft(windows * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)))
    found = np.log10(np.maximum((spectrum.real**2 + spectrum.imag**2) @ mel_bands(bands).T, LEAST_POWER))
    found = np.maximum(found, found.max() - RANGE)
    return np.asarray((found + 4) / 4, np.float32)


@cache
def mel_bands(bands: int) -> Array:
    """Make a triangle for each band, of area one, over the frequencies of a spectrum."""
    edges = _hertz(np.linspace(0.0, _mels(RATE / 2), bands + 2))
    frequencies = np.linspace(0.0, RATE / 2, WINDOW // 2 + 1)
    low, middle, high = (edges[first : first + bands, None] for first in range(3))
    sides = np.minimum((frequencies - low) / (middle - low), (high - frequencies) / (high - middle))
    found: Array = np.maximum(0.0, sides) * 2 / (high - low)
    return found


def _mels(hertz: float) -> float:
    return _LINEAR_MELS + math.log(hertz / _LINEAR_HZ) / _PER_MEL


def _hertz(mels: Array) -> Array:
    straight = mels * _LINEAR_HZ / _LINEAR_MELS
    return np.where(mels < _LINEAR_MELS, straight, _LINEAR_HZ * np.exp(_PER_MEL * (mels - _LINEAR_MELS)))
