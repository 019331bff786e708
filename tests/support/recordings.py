"""A small tree of recordings as LibriSpeech publishes its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

RATE = 16_000
# By speaker and chapter: what each recording says, and its length in samples.
SAID = {
    (84, 121123): [("GO", 8_000), ("DO YOU KNOW THE COUNT OF MONTE CRISTO'S", 30_000), ("OH", 51_200)],
    (84, 121550): [("BUT WITH FULL RAVISHMENT THE HOURS OF PRIME", 51_200 - 1), ("YES", 51_200 + 1)],
    (1272, 128104): [("NOR IS MISTER QUILTER'S", 20_000), ("I", 4_000), ("AND WHY", 16_000)],
}


def sound(number: int, count: int) -> np.ndarray:
    drawn = np.random.default_rng(number)
    notes = 0.4 * np.sin(2 * np.pi * (200 + 40 * number) * np.arange(count) / RATE)
    return np.round(32_767 * (notes + drawn.normal(0, 0.02, count))).astype(np.int16)


def part_of_speech(folder: Path, said: dict[tuple[int, int], list[tuple[str, int]]] | None = None) -> Path:
    """Write a part as it is unpacked."""
    import soundfile

    for (speaker, chapter), rows in (SAID if said is None else said).items():
        within = folder / str(speaker) / str(chapter)
        within.mkdir(parents=True)
        lines = []
        for number, (text, count) in enumerate(rows):
            name = f"{speaker}-{chapter}-{number:04}"
            soundfile.write(within / f"{name}.flac", sound(number, count), RATE, subtype="PCM_16")
            lines.append(f"{name} {text}\n")
        (within / f"{speaker}-{chapter}.trans.txt").write_text("".join(lines))
    return folder


def with_vocabulary(folder: Path) -> Path:
    """Write that of a model with capital letters and a bar between words, and name the model."""
    letters = {letter: number for number, letter in enumerate("|ETAONIHSRDLUMWCFGYPBVK'XJQZ", 4)}
    (folder / "vocab.json").write_text(json.dumps({"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, **letters}))
    return folder / "m.onnx"
