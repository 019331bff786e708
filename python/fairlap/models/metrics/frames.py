"""Metrics of speech: an output scores all ids for each frame, and id 0 is the blank between them.

What frames spell is the likeliest id of each, without repetitions and blanks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from fairlap.models.metrics.metric import IGNORED, Array, Output, Package, Parts, TaskMetric, ratio, refuse
from fairlap.models.metrics.tokens import word_errors

_JIWER = Package("jiwer", "jiwer", "wer")


def _require_frames(text: str, labels: Array, outputs: Sequence[Output], between: int | None) -> None:
    [output] = outputs
    if len(output.shape) != 3 or np.dtype(output.dtype).kind != "f":
        shape = list(output.shape)
        raise refuse(f"{text} takes scores [items, frames, ids]; {output.name} is {shape} of {output.dtype}")
    if labels.ndim != 2 or labels.dtype.kind not in "iu":
        raise refuse(
            f"{text} takes labels of shape [items, ids], whole numbers; these are {list(labels.shape)} of "
            f"{labels.dtype}"
        )
    ids, counted = output.shape[-1], labels[labels != IGNORED]
    if ((counted < 1) | (counted >= ids)).any():
        raise refuse(f"labels must be within 1..{ids - 1}, the ids of {output.name}, or {IGNORED}; 0 is the blank")
    if between is not None and not 0 < between < ids:
        raise refuse(f"{text} names an id that is not within 1..{ids - 1}")
    wordless = [item for item, row in enumerate(labels) if not _words(row[row != IGNORED], between)]
    if wordless:
        raise refuse(f"{text} takes at least one word for each item; the labels of item {wordless[0]} have none")


def _spelt(scores: Array) -> Array:
    best = scores.argmax(axis=-1)
    begins = np.concatenate([[True], best[1:] != best[:-1]])
    spelt: Array = best[begins & (best != 0)]
    return spelt


def _words(ids: Array, between: int | None) -> list[str]:
    """Make a word of each id; or of those between two ids that are ``between``."""
    if between is None:
        return [str(int(each)) for each in ids]
    parts = np.split(ids, np.flatnonzero(ids == between))
    words = ["-".join(str(int(each)) for each in part if each != between) for part in parts]
    return [word for word in words if word]


def _errors(outputs: Array, labels: Array, between: int | None) -> Parts:
    given = [_words(_spelt(each), between) for each in outputs]
    right = [_words(row[row != IGNORED], between) for row in labels]
    return word_errors((" ".join(one), " ".join(other)) for one, other in zip(given, right, strict=True))


def _metric(meaning: str, between: int | None) -> TaskMetric:
    fits, errors = partial(_require_frames, between=between), partial(_errors, between=between)
    return TaskMetric(meaning, fits, errors, ratio, _JIWER, better="lower")


def _words_between(between: int) -> TaskMetric:
    meaning = f"word error rate of what frames spell, where words are the ids between those of {between}"
    return _metric(meaning, between)


METRICS: Mapping[str, TaskMetric] = {
    "ctc_cer": _metric("error rate of the ids that frames spell: replaced, left out or added, for each of the labels",
                       None),
}  # fmt: skip
FAMILIES: Mapping[str, Callable[[int], TaskMetric]] = {"ctc_wer": _words_between}
