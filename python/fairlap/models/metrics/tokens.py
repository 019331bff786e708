"""Metrics of sequences: each item's label is a row of token ids, and each id counts as a word, of chrF as a character.

A model gives ids, or scores of all ids at each place of the label, whose largest is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from fairlap.models.metrics.metric import IGNORED, Array, Output, Package, Parts, TaskMetric, other_shape, ratio, refuse

_MOST_N = 4  # words in a row that BLEU counts
_FIRST_CHARACTER, _MOST_IDS = 0x20000, 0x10FFFF - 0x20000  # of ids as characters, none of which is a space
_SACREBLEU = Package("sacrebleu", "sacrebleu", "bleu")


def _require_tokens(text: str, labels: Array, outputs: Sequence[Output]) -> None:
    [output] = outputs
    shape = output.shape
    of_ids = np.dtype(output.dtype).kind in "iu"
    if len(shape) != (2 if of_ids else 3):
        raise refuse(
            f"{text} takes an output of ids, whole numbers [items, tokens], or of their scores [items, tokens, ids]; "
            f"{output.name} is {list(shape)} of {output.dtype}"
        )
    if labels.ndim != 2 or labels.dtype.kind not in "iu":
        raise refuse(
            f"{text} takes labels of shape [items, tokens], whole numbers; these are {list(labels.shape)} of "
            f"{labels.dtype}"
        )
    if not of_ids and labels.shape[1] != shape[1]:
        raise other_shape(text, labels, output, shape[1:2], "whole numbers")
    counted = labels != IGNORED
    if (labels[counted] < 0).any():
        raise refuse(f"labels must be token ids, 0 or more, or {IGNORED} (got {labels[counted].min()})")
    if empty := np.flatnonzero(~counted.any(axis=1)).tolist():
        raise refuse(f"{text} takes at least one token for each item; the labels of item {empty[0]} have none")
    if not of_ids and labels[counted].max() >= shape[-1]:
        raise refuse(f"labels must be within 0..{shape[-1] - 1}, the ids of {output.name} (got {labels.max()})")


def _require_characters(text: str, labels: Array, outputs: Sequence[Output], space: int | None) -> None:
    _require_tokens(text, labels, outputs)
    if labels.max() > _MOST_IDS:
        raise refuse(f"{text} takes ids up to {_MOST_IDS:,}, each of which is a character (got {labels.max():,})")
    spaceless = (labels != IGNORED) & (labels != space)
    if empty := np.flatnonzero(~spaceless.any(axis=1)).tolist():
        raise refuse(f"{text} takes at least one character for each item; the labels of item {empty[0]} have none")


def _rows(outputs: Array, labels: Array) -> Iterator[tuple[list[int], list[int]]]:
    """Of each item what was given, and what is right. Of ids, those below 0 do not count."""
    if outputs.ndim == 3:
        outputs = np.where(labels == IGNORED, IGNORED, outputs.argmax(axis=-1))
    for given, right in zip(outputs, labels, strict=True):
        yield _ids(given[given >= 0]), _ids(right[right != IGNORED])


def _ids(numbers: Array) -> list[int]:
    """As whole numbers, since contestants may hand over ids in another type."""
    return [int(each) for each in numbers]


def _sentences(outputs: Array, labels: Array) -> Iterator[tuple[str, str]]:
    return ((_sentence(given), _sentence(right)) for given, right in _rows(outputs, labels))


def _sentence(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))


def _matches(outputs: Array, labels: Array) -> Parts:
    """For runs of one to four words, how many of them are right, and how many there are; and both lengths."""
    from sacrebleu.metrics import BLEU

    bleu = BLEU(tokenize="none", max_ngram_order=_MOST_N)
    found = [bleu.corpus_score([given], [[right]]) for given, right in _sentences(outputs, labels)]
    return (
        np.array([each.counts for each in found]),
        np.array([each.totals for each in found]),
        np.array([each.sys_len for each in found]),
        np.array([each.ref_len for each in found]),
    )


def _bleu(right: Array, counted: Array, given_lengths: Array, right_lengths: Array) -> float:
    from sacrebleu.metrics import BLEU

    found = BLEU.compute_bleu(
        right.sum(axis=0).tolist(),
        counted.sum(axis=0).tolist(),
        int(given_lengths.sum()),
        int(right_lengths.sum()),
        max_ngram_order=_MOST_N,
    )
    return float(found.score)


def _spelling(ids: Sequence[int], space: int | None) -> str:
    return "".join(" " if each == space else chr(_FIRST_CHARACTER + min(each, _MOST_IDS)) for each in ids)


def _character_matches(outputs: Array, labels: Array, space: int | None) -> Parts:
    """For runs of one to six characters, how many are given, how many are right, and how many are both."""
    from sacrebleu.metrics import CHRF

    spelt = ((_spelling(given, space), _spelling(right, space)) for given, right in _rows(outputs, labels))
    given, right = zip(*spelt, strict=True)
    return (np.array(CHRF()._extract_corpus_statistics(given, [right])),)


def _chrf(matches: Array) -> float:
    from sacrebleu.metrics import CHRF

    return float(CHRF()._compute_score_from_stats(matches.sum(axis=0).tolist()).score)


def _of_characters(space: int | None = None) -> TaskMetric:
    meaning = "chrF of the whole corpus, from 0 to 100, where each id is a character"
    meaning += "" if space is None else f" and {space} the space, which does not count"
    fits, matches = partial(_require_characters, space=space), partial(_character_matches, space=space)
    return TaskMetric(meaning, fits, matches, _chrf, _SACREBLEU)


def word_errors(sentences: Iterable[tuple[str, str]]) -> Parts:
    """Count words that were replaced, left out or added, and those of what is right, of each pair."""
    from jiwer import process_words

    found = [process_words(right, given) for given, right in sentences]
    wrong = [each.substitutions + each.deletions + each.insertions for each in found]
    return np.array(wrong), np.array([each.hits + each.substitutions + each.deletions for each in found])


def _errors(outputs: Array, labels: Array) -> Parts:
    return word_errors(_sentences(outputs, labels))


def _overlap(kind: str, outputs: Array, labels: Array) -> Parts:
    """Score each item by the harmonic mean of precision and recall."""
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer([kind])
    found = [scorer.score(right, given)[kind].fmeasure for given, right in _sentences(outputs, labels)]
    return np.array(found), np.ones(len(found))


def _rouge(kind: str, of: str) -> TaskMetric:
    meaning = f"mean F-measure of {of} that an answer shares with its label, from 0 to 1"
    package = Package("rouge_score", "rouge-score", "rouge")
    return TaskMetric(meaning, _require_tokens, partial(_overlap, kind), ratio, package, best_is_1=True)


METRICS: Mapping[str, TaskMetric] = {
    "bleu": TaskMetric("BLEU of the whole corpus, from 0 to 100", _require_tokens, _matches, _bleu,
                       _SACREBLEU),
    "chrf": _of_characters(),
    "wer": TaskMetric("word error rate: words replaced, left out or added, for each word of the labels",
                      _require_tokens, _errors, ratio, Package("jiwer", "jiwer", "wer"), better="lower"),
    "rouge1": _rouge("rouge1", "words"),
    "rouge2": _rouge("rouge2", "pairs of words in a row"),
    "rougeL": _rouge("rougeL", "the longest sequence of words"),
}  # fmt: skip
FAMILIES: Mapping[str, Callable[[int], TaskMetric]] = {"chrf": _of_characters}
