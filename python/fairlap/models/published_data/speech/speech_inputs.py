"""Recordings as a user's model hears them, and their texts in the characters of the ``vocab.json`` beside it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from fairlap.models.array_files.stored_rows import stored
from fairlap.models.metrics.metric import IGNORED
from fairlap.models.published_data.published_images import Array, refuse
from fairlap.models.published_data.speech.speech_folders import SoundSize, Utterance, ids_of, short_enough, speech_in

VOCABULARY = "vocab.json"
_BLANKS = ("<pad>", "[PAD]", "<blank>", "<blk>")


def sounds_of(folder: Path, size: SoundSize | None) -> Array:
    """Read the recordings of the test part, one row each."""
    kept, known = _heard(folder, size)
    return stored(known.taken(each.sound())[None] for each in kept)


def spelt_labels(folder: Path, vocabulary: Path, size: SoundSize | None) -> Array:
    """Spell the texts of the same recordings by ids, filled up with what metrics ignore."""
    kept, _ = _heard(folder, size)
    ids = _ids_in(folder, vocabulary)
    spelt = [ids_of(each, ids) for each in kept]
    labels = np.full((len(spelt), max(map(len, spelt))), IGNORED, np.int64)
    for row, each in zip(labels, spelt, strict=True):
        row[: len(each)] = each
    return labels


def _heard(folder: Path, size: SoundSize | None) -> tuple[list[Utterance], SoundSize]:
    if size is None:
        raise refuse(
            folder,
            "a model hears recordings of one length; name its input and size, as --shapes features:8x320x80 for "
            "frames of 10 ms with 80 bands, or --shapes sound:8x51200 for samples",
        )
    found = speech_in(folder)
    held = [each for each in found if each.held_out]
    return short_enough(held or found, size), size


def _ids_in(folder: Path, vocabulary: Path) -> dict[str, int]:
    if not vocabulary.is_file():
        raise refuse(folder, f"there is no {vocabulary} to spell its texts with; put the model's {VOCABULARY} there")
    try:
        ids = msgspec.json.decode(vocabulary.read_bytes(), type=dict[str, int])
    except msgspec.MsgspecError as error:
        raise refuse(vocabulary, f"it is not an object with the id of each character: {error}") from None
    if blank := next((each for each in _BLANKS if ids.get(each)), ""):
        raise refuse(vocabulary, f"its blank {blank!r} has the id {ids[blank]}; frames are scored with the blank at 0")
    return ids
