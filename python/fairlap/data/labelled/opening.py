"""Find and read labelled data by what a user wrote: a built-in set, a file, FILE:COLUMN of a table, or a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from fairlap.bench_models.conformer.spec import CHARACTERS, FRAMES, MELS
from fairlap.data.labelled.built_in import BUILT_IN
from fairlap.data.labelled.criteo_file import criteo_items, is_criteo
from fairlap.data.labelled.csv_file import csv_items
from fairlap.data.labelled.image_folder import image_items
from fairlap.data.labelled.items import CODE, Items, items_with_classes
from fairlap.data.labelled.npz_file import npz_items
from fairlap.data.labelled.parquet_file import column_of, parquet_items
from fairlap.data.labelled.table import Column, items_of_table
from fairlap.errors import InvalidRequest
from fairlap.models.array_files.pyarrow_modules import pyarrow_for
from fairlap.models.array_files.stored_rows import changed_rows, stored
from fairlap.models.published_data.finding import Reader, reader_of
from fairlap.models.published_data.hugging_face_folders import (
    HuggingFaceFolder,
    holds_hugging_face,
    hugging_face_folder,
)
from fairlap.models.published_data.published_images import pixels_of
from fairlap.models.published_data.speech.speech_folders import (
    SoundSize,
    holds_speech,
    ids_of,
    refuse_beside_speech,
    short_enough,
    speech_in,
)
from fairlap.request.fields.data.training_data import TrainingData
from fairlap.suggestions import did_you_mean

# Recordings with what is said in them, in LibriSpeech's trees, as a conformer learns them. It hears 3.2 seconds, so
# longer recordings are left out, and those whose text has more characters than a label holds.
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


def published_items(path: Path, read: Reader) -> Items:
    found = read(path)
    images = changed_rows(found.images, pixels_of)
    return replace(items_with_classes({"image": images}, found.labels, path, found.classes), held_out=found.held_out)


def is_table(path: Path) -> bool:
    return not any(each.type == "Image" for each in hugging_face_folder(path).features.values())


def hugging_face_items(path: Path) -> Items:
    found = hugging_face_folder(path)
    return replace(items_of_table(path, found.columns, found.label, _batches(found)), held_out=found.held_out)


def _batches(found: HuggingFaceFolder) -> Iterator[Mapping[str, Column]]:
    """Classes have their names."""
    arrow, _ = pyarrow_for(found.path, CODE)
    names = np.array(found.classes()[1]) if found.features[found.label].type == "ClassLabel" else None
    for batch in found.batches(found.columns):
        if lacking := [name for name in found.columns if batch.column(name).null_count]:
            raise InvalidRequest(f"{found.path}: the column {lacking[0]!r} lacks values; fill them in", code=CODE)
        columns = {name: column_of(found.path, name, batch.column(name), arrow.types) for name in found.columns}
        if names is not None:
            columns[found.label] = names[columns[found.label].astype(np.int64)]
        yield columns


_TABLES: Mapping[str, Callable[[Path, str], Items]] = {
    ".csv": csv_items,
    ".tsv": csv_items,
    ".parquet": parquet_items,
}
_FILES = {**_TABLES, ".npz": npz_items}
_LAYOUTS: tuple[tuple[Callable[[Path], bool], Callable[[Path], Items]], ...] = (
    (lambda path: holds_hugging_face(path) and is_table(path), hugging_face_items),
    (is_criteo, criteo_items),
    (holds_speech, speech_items),
)


def data_named(text: str) -> TrainingData:
    """Nothing is read yet."""
    if text in BUILT_IN:
        return TrainingData(text)
    file, colon, column = text.rpartition(":")
    if colon and Path(file).suffix.lower() in _TABLES:
        if not column:
            raise InvalidRequest(f"{text!a} names no column; write FILE:COLUMN, or FILE for the last one", code=CODE)
    else:
        file, column = text, ""
    if not text.isprintable() or not file.strip():
        raise InvalidRequest(f"{text!a} is not the name of a data set or a file", code=CODE)
    return TrainingData(text, str(Path(file).absolute()), column)


def items_in(data: TrainingData) -> Items:
    """All items, read again each time."""
    if not data.path and data.text in BUILT_IN:
        return BUILT_IN[data.text]()
    path = Path(data.path or data.text)
    try:
        if (found := next((read for fits, read in _LAYOUTS if fits(path)), None)) is not None:
            return found(path)
        if (published := reader_of(path)) is not None:
            return published_items(path, published)
        if path.is_dir():
            refuse_beside_speech(path)
            return image_items(path, "")
        if not path.is_file():
            raise InvalidRequest(
                f"no data set and no file named {data.text}; "
                + (
                    did_you_mean(data.text, BUILT_IN)
                    or f"`fairlap list data` lists the sets, and files end with {', '.join(_FILES)}"
                ),
                code=CODE,
            )
        read = _FILES.get(path.suffix.lower())
        if read is None:
            raise InvalidRequest(
                f"{path} is not data that fairlap reads; files end with {', '.join(_FILES)} or .tar, and images are "
                "in a folder with one folder for each class, or as MNIST, CIFAR or Hugging Face's datasets store them",
                code=CODE,
            )
        return read(path, data.column)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror or error}", code=CODE) from None
    except MemoryError:
        raise InvalidRequest(f"{path} does not fit into memory", code=CODE) from None
