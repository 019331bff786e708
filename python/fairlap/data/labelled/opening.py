"""Find and read labelled data by what a user wrote: a built-in set, a file, FILE:COLUMN of a table, or a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from fairlap.data.labelled.built_in import BUILT_IN
from fairlap.data.labelled.criteo_file import criteo_items, is_criteo
from fairlap.data.labelled.csv_file import csv_items
from fairlap.data.labelled.hugging_face_items import hugging_face_items, is_table
from fairlap.data.labelled.image_folder import image_items
from fairlap.data.labelled.items import CODE, Items
from fairlap.data.labelled.npz_file import npz_items
from fairlap.data.labelled.parquet_file import parquet_items
from fairlap.data.labelled.published_set import published_items
from fairlap.data.labelled.speech import speech_items
from fairlap.errors import InvalidRequest
from fairlap.models.published_data.finding import reader_of
from fairlap.models.published_data.hugging_face_folders import holds_hugging_face
from fairlap.models.published_data.speech.speech_folders import holds_speech, refuse_beside_speech
from fairlap.request.fields.data.training_data import TrainingData
from fairlap.suggestions import did_you_mean

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
