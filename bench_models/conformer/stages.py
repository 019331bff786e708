"""What is around a conformer, from a recording to its text: for ``--before`` and ``--after``."""

from __future__ import annotations

import math
import wave
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fairlap.bench_models.conformer.spec import CHARACTERS, FRAMES, MELS

Array = npt.NDArray[Any]
RATE, WINDOW, HOP = 16_000, 400, 160
SAMPLES = FRAMES * HOP
LEAST_POWER, RANGE = 1e-10, 8.0  # what is quieter than the loudest by more powers of ten counts as that quiet
_LINEAR_HZ, _LINEAR_MELS = 1000.0, 15.0  # Slaney's mels grow by the logarithm from there
_PER_MEL = math.log(6.4) / 27


def samples(path: Path) -> Array:
    """Read a WAV file of 16,000 samples per second; it is cut to the model's length, or filled up with silence."""
    with wave.open(str(path), "rb") as file:
        rate, channels, bits = file.getframerate(), file.getnchannels(), 8 * file.getsampwidth()
        if (rate, channels, bits) != (RATE, 1, 16):
            raise ValueError(f"a recording must have one channel of 16 bits at {RATE} Hz ({channels}, {bits}, {rate})")
        found = np.frombuffer(file.readframes(SAMPLES), "<i2") / 32_768
    return np.pad(found, (0, SAMPLES - len(found)))


def log_mel(sound: Array) -> Array:
    """Compute the features that Whisper's models take: powers of 80 bands by their logarithm, every 10 ms."""
    padded = np.pad(sound, WINDOW // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP][:FRAMES]
    spectrum = np.fft.rfft(windows * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)))
    found = np.log10(np.maximum((spectrum.real**2 + spectrum.imag**2) @ mel_bands().T, LEAST_POWER))
    found = np.maximum(found, found.max() - RANGE)
    return np.asarray((found + 4) / 4, np.float32)[None]


def greedy(outputs: Mapping[str, Array]) -> list[int]:
    """Take the likeliest character of each frame; one that goes on counts once, and blanks do not."""
    best = outputs["logits"][0].argmax(axis=-1)
    begins = np.concatenate([[True], best[1:] != best[:-1]])
    return [int(each) for each in best[begins & (best != 0)]]


def text(characters: list[int]) -> str:
    return "".join(CHARACTERS[each] for each in characters)


@cache
def mel_bands() -> Array:
    """Make a triangle for each band, of area one, over the frequencies of a spectrum."""
    edges = _hertz(np.linspace(0.0, _mels(RATE / 2), MELS + 2))
    frequencies = np.linspace(0.0, RATE / 2, WINDOW // 2 + 1)
    low, middle, high = (edges[first : first + MELS, None] for first in range(3))
    sides = np.minimum((frequencies - low) / (middle - low), (high - frequencies) / (high - middle))
    bands: Array = np.maximum(0.0, sides) * 2 / (high - low)
    return bands


def _mels(hertz: float) -> float:
    return _LINEAR_MELS + math.log(hertz / _LINEAR_HZ) / _PER_MEL


def _hertz(mels: Array) -> Array:
    straight = mels * _LINEAR_HZ / _LINEAR_MELS
    return np.where(mels < _LINEAR_MELS, straight, _LINEAR_HZ * np.exp(_PER_MEL * (mels - _LINEAR_MELS)))
