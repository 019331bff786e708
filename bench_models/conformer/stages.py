"""What is around a conformer, from a recording to its text: for ``--before`` and ``--after``."""

from __future__ import annotations

import wave
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from fairlap.bench_models.conformer.spec import CHARACTERS, FRAMES, MELS
from fairlap.models.published_data.speech.log_mel import HOP, RATE, Array, log_mel_frames
from fairlap.models.published_data.speech.speech_folders import read_sound

SAMPLES = FRAMES * HOP


def samples(path: Path) -> Array:
    """Read a WAV or FLAC file of 16,000 samples per second, cut to the model's length, or filled up with silence."""
    if path.suffix.lower() == ".flac":
        found = read_sound(path)[:SAMPLES]
    else:
        with wave.open(str(path), "rb") as file:
            rate, channels, bits = file.getframerate(), file.getnchannels(), 8 * file.getsampwidth()
            if (rate, channels, bits) != (RATE, 1, 16):
                raise ValueError(
                    f"a recording must have one channel of 16 bits at {RATE} Hz ({channels}, {bits}, {rate})"
                )
            found = np.frombuffer(file.readframes(SAMPLES), "<i2") / 32_768
    return np.pad(found, (0, SAMPLES - len(found)))


def log_mel(sound: Array) -> Array:
    """Compute the features that Whisper's models take: powers of 80 bands by their logarithm, every 10 ms."""
    return log_mel_frames(sound, FRAMES, MELS)[None]


def greedy(outputs: Mapping[str, Array]) -> list[int]:
    """Take the likeliest character of each frame; one that goes on counts once, and blanks do not."""
    best = outputs["logits"][0].argmax(axis=-1)
    begins = np.concatenate([[True], best[1:] != best[:-1]])
    return [int(each) for each in best[begins & (best != 0)]]


def text(characters: list[int]) -> str:
    return "".join(CHARACTERS[each] for each in characters)
