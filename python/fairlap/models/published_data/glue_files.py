"""The TSV files of GLUE's nine tasks. Cells are not quoted; CoLA has no header line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fairlap.models.published_data.published_images import Array, refuse
from fairlap.models.published_data.texts import Texts

_TEXTS = (
    ("question1", "question2"),  # QQP
    ("question", "sentence"),  # QNLI
    ("#1 String", "#2 String"),  # MRPC
    ("sentence1", "sentence2"),  # MNLI, RTE, STS-B and WNLI
    ("sentence",),  # SST-2
)
_LABELS = ("gold_label", "is_duplicate", "Quality", "label", "score")
_COLA = 4  # columns: source, label, the author's mark, sentence
_CLASSES = ({"entailment": 0, "not_entailment": 1}, {"entailment": 0, "neutral": 1, "contradiction": 2})
"""As they are numbered where models of these tasks are published."""


def glue_texts(file: Path) -> Texts:
    try:
        lines = file.read_text("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise refuse(file, "it is not text in UTF-8") from None
    rows = [line.rstrip("\r").split("\t") for line in lines if line.strip()]
    if not rows:
        raise refuse(file, "it is empty")
    if len(rows[0]) == _COLA and all(row[1:2] in (["0"], ["1"]) for row in rows):
        return Texts([row[-1] for row in rows], labels=_numbers(file, [row[1] for row in rows]))
    header, *items = rows
    columns = next((each for each in _TEXTS if set(each) <= set(header)), None)
    if columns is None or not items:
        why = "it has no items" if columns else f"its header has no texts of a task of GLUE: {', '.join(header)[:80]}"
        raise refuse(file, why)
    if short := next((number for number, row in enumerate(items, 2) if len(row) != len(header)), 0):
        raise refuse(file, f"line {short} has {len(items[short - 2])} cells, and the header {len(header)}")
    first, *second = ([row[header.index(name)] for row in items] for name in columns)
    label = next((name for name in _LABELS if name in header), None)
    labels = None if label is None else _numbers(file, [row[header.index(label)] for row in items])
    return Texts(first, second[0] if second else None, labels)


def _numbers(file: Path, texts: Sequence[str]) -> Array:
    names = set(texts)
    if classes := next((each for each in _CLASSES if names <= set(each)), None):
        return np.array([classes[text] for text in texts], np.int32)
    try:
        values = np.array(texts).astype(np.float64)
    except ValueError:
        raise refuse(file, f"{min(names - set().union(*_CLASSES))!r:.60} is not a label of a task of GLUE") from None
    whole = (values == np.round(values)).all() and all(text.lstrip("-").isdecimal() for text in names)
    return values.astype(np.int32 if whole else np.float32)
