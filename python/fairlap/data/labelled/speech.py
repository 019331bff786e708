"""Recordings with what is said in them, in LibriSpeech's trees, as a conformer learns them.

It hears 3.2 seconds, so longer recordings are left out, and those whose text has more characters than a label holds.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from fairlap.bench_models.conformer.spec import CHARACTERS, FRAMES, MELS
from fairlap.data.labelled.items import Items, items_with_classes
from fairlap.models.array_files.stored_rows import stored
from fairlap.models.published_data.speech.speech_folders import SoundSize, ids_of, short_enough, speech_in

LONGEST = FRAMES // 8  # of a label: two convolutions leave a fourth of the frames, and each character has two of those


def speech_items(folder: Path) -> Items:
    found, size = speech_in(folder), SoundSize.of_frames(FRAMES, MELS)
    kept = short_enough(found, size, LONGEST)
    ids = {character: number for number, character in enumerate(CHARACTERS) if number}
    labels = np.zeros((len(kept), LONGEST), np.int32)
    for row, each in zip(labels, kept, strict=True):
        spelt = ids_of(each, ids)
        row[: len(spelt)] = spelt
    features = stored(size.taken(each.sound())[None] for each in kept)
    where = (
        f"{folder}, {len(kept):,} of {len(found):,} recordings, those within {size.seconds:g} s and {LONGEST} letters"
    )
    held = np.array([each.held_out for each in kept])
    items = items_with_classes({"features": features}, labels, where, list(CHARACTERS))
    return replace(items, held_out=held if held.any() and not held.all() else None)
