"""What a user knows of each item of the data: right answers for metrics, and the group that it is of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from fairlap import quantity_text
from fairlap.errors import FairlapError
from fairlap.machine.files.regular_file import require_regular
from fairlap.models.array_files.npy_map import mapped
from fairlap.models.array_files.numpy_files import why_not_read
from fairlap.models.array_files.table_columns import column_in
from fairlap.models.metrics.boxes import labels_of_annotations
from fairlap.models.metrics.metric import CODE, Array
from fairlap.models.published_data.boxed_photos import boxed_photos, has_boxes
from fairlap.models.published_data.finding import labels_at
from fairlap.models.published_data.speech.speech_folders import holds_speech, refuse_beside_speech
from fairlap.models.published_data.speech.speech_inputs import spelt_labels
from fairlap.models.published_data.text_tokens import is_text, labels_of_texts
from fairlap.models.sources.contract import SourceError
from fairlap.models.sources.given_data.reading import (
    length_of,
    scores_verified,
    size_of,
    sound_size_of,
    tokenizer_of,
    vocabulary_of,
)
from fairlap.models.sources.given_data.sets import why_unreadable
from fairlap.models.task_metrics import metric_named
from fairlap.request.fields.data.table_column import TABLES, file_and_column
from fairlap.request.fields.source import Source

_MOST_GROUPS = 50
_MOST_CHARACTERS = 60  # of the name of a group


def labels_in(where: str | Path, metrics: Sequence[str], source: Source | None = None) -> Array:
    """With one row for each item: an array, a column of numbers, a COCO annotation file, or what a text is labelled.

    ``source`` is the model, beside which the tokenizer of texts is.
    """
    text = str(where)
    read_by = {metric: metric_named(metric).reads for metric in metrics}
    if len(set(read_by.values())) > 1:
        one, other = (next(metric for metric, kind in read_by.items() if kind == each) for each in _two_of(read_by))
        raise SourceError(
            f"{one} takes other --labels than {other}; ask for one of them in a race",
            code=CODE,
        )
    kind = next(iter(read_by.values()), "")
    photos = None if source is None else size_of(source)
    if kind and source is not None and has_boxes(Path(source.inputs)):
        if source.inputs != text:
            raise _refused(f"{text} has no boxes of the photos of {source.inputs}; name that file with --labels too")
        return _read(text, "labels", lambda path: boxed_photos(path, photos, verified=scores_verified(source)).labels)
    if kind == "coco":
        return _read(text, "labels", lambda path: labels_of_annotations(path.read_bytes()))
    if kind:
        raise _refused(f"{metrics[0]} takes Open Images' file of boxes as --inputs and as --labels (got {text})")
    if source is not None and holds_speech(Path(text)):
        return _read(text, "labels", lambda path: spelt_labels(path, vocabulary_of(source), sound_size_of(source)))
    if source is not None and is_text(Path(text)):
        return _read(text, "labels", lambda path: labels_of_texts(path, tokenizer_of(source), length_of(source)))
    return _of_items(text, "labels", _numbers)


def _two_of(read_by: Mapping[str, str]) -> list[str]:
    return sorted(set(read_by.values()), reverse=True)[:2]


def groups_in(text: str, items: int) -> tuple[Array, tuple[str, ...]]:
    """Read the number of each item's group, and the groups' names; whole numbers come in their own order."""
    found = _of_items(text, "groups", lambda texts: texts)
    if found.ndim != 1 or found.dtype.kind not in "biuU":
        raise _refused(f"{text} has {found.dtype} of shape {list(found.shape)}; groups are a text or number per item")
    if len(found) != items:
        raise _refused(f"there are {len(found):,} groups in {text} for {items:,} items of the inputs")
    if found.dtype.kind == "U" and (found == "").any():
        raise _refused(f"{text}: item {int((found == '').argmax()) + 1} has no group; name a group for it")
    names, numbers = np.unique(found, return_inverse=True)
    if not 1 < len(names) <= _MOST_GROUPS:
        count = quantity_text.count(len(names), "group")
        raise _refused(f"{text} has {count}; scores are compared between 2 and {_MOST_GROUPS}")
    if long := [str(name) for name in names if len(str(name)) > _MOST_CHARACTERS or not str(name).isprintable()]:
        raise _refused(f"{text}: {long[0][:_MOST_CHARACTERS]!a} is not the name of a group: up to 60 characters")
    return numbers.reshape(-1).astype(np.int32), tuple(map(str, names))


def _of_items(text: str, what: str, of_texts: Callable[[Array], Array]) -> Array:
    """Read an array from a .npy file, or a column of a table, whose texts ``of_texts`` converts."""
    file, column = file_and_column(text)
    if Path(file).suffix.lower() in TABLES:
        if not column:
            raise _refused(f"{file} is a table; name the column with the {what}, FILE:COLUMN")
        return _read(file, what, lambda path: of_texts(column_in(path, column, CODE)))
    found = _read(file, what, lambda path: _array(path) if (own := labels_at(path)) is None else own)
    if not isinstance(found, np.ndarray) or not found.ndim:
        raise _refused(f"{file} is not one array of {what}, a .npy file")
    return found


def _array(path: Path) -> Array:
    refuse_beside_speech(path)
    if why := why_not_read(path, mapped=True):
        raise SourceError(f"{path} cannot be read: {why}", code="E_SOURCE_SIZE")
    return mapped(path)


def _numbers(texts: Array) -> Array:
    try:
        return texts.astype(np.int64)
    except ValueError:
        return texts.astype(np.float64)


def _read(text: str, what: str, read: Callable[[Path], Array]) -> Array:
    path = Path(text)
    try:
        require_regular(path)
        return read(path)
    except FairlapError:
        raise
    except Exception as error:  # NumPy and msgspec raise several types
        raise _refused(f"{path} cannot be read as {what}: {why_unreadable(error)}") from None


def _refused(why: str) -> SourceError:
    return SourceError(why, code=CODE)
