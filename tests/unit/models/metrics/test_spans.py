"""Spans are scored as the scorer of SQuAD does it, with places for words."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.metrics.metric import IGNORED, Output
from fairlap.models.task_metrics import parts_of, require_labels, score_of, value_of

PLACES = 12
RNG = np.random.default_rng(3)


def scores_of(spans: list[tuple[int, int]]) -> list[np.ndarray]:
    ends = np.array(spans).T
    return [np.eye(PLACES)[places] * 5 + RNG.uniform(0, 0.1, (len(spans), PLACES)) for places in ends]


def f1_of_words(given: range, right: range) -> float:
    shared = sum((Counter(given) & Counter(right)).values())
    precision, recall = shared / len(given), shared / len(right)
    return 2 * precision * recall / (precision + recall) if shared else 0.0


def test_overlaps_are_those_of_a_count_of_words() -> None:
    given = [(0, 3), (2, 2), (5, 9), (4, 11), (1, 1)]
    right = [(0, 3), (2, 6), (0, 4), (6, 7), (0, 2)]
    expected = [f1_of_words(range(a, b + 1), range(c, d + 1)) for (a, b), (c, d) in zip(given, right, strict=True)]
    found = parts_of("span_f1", scores_of(given), np.array(right))
    assert found[0] == pytest.approx(expected)
    assert value_of("span_f1", [found]) == pytest.approx(np.mean(expected))
    assert value_of("exact_match", [parts_of("exact_match", scores_of(given), np.array(right))]) == 0.2


def test_the_best_of_several_right_spans_counts() -> None:
    right = np.array([[[0, 1], [4, 6]], [[2, 3], [IGNORED, IGNORED]]])
    assert parts_of("exact_match", scores_of([(4, 6), (2, 4)]), right)[0].tolist() == [1, 0]
    assert parts_of("span_f1", scores_of([(4, 6), (2, 4)]), right)[0] == pytest.approx([1.0, 0.8])


def test_no_span_ends_before_it_begins() -> None:
    """Every pair is tried by hand."""
    starts, ends = RNG.standard_normal((2, 200, PLACES))
    labels = np.zeros((200, 2), dtype=np.int64)
    for item in range(200):
        pairs = [(first, last) for first in range(PLACES) for last in range(first, PLACES)]
        labels[item] = max(pairs, key=lambda pair: starts[item, pair[0]] + ends[item, pair[1]])
    assert value_of("exact_match", [parts_of("exact_match", [starts, ends], labels)]) == 1.0


def test_a_share_of_matches_has_wilson_s_interval() -> None:
    given = [(0, 3), (2, 2), (5, 9), (4, 11)]
    found = score_of("exact_match", [parts_of("exact_match", scores_of(given), np.array([*given[:3], (0, 0)]))])
    assert (found.value, found.interval, found.items) == (0.75, "Wilson", 4)


@pytest.mark.parametrize(
    "labels",
    [
        np.zeros((4, 3), dtype=np.int64),
        np.zeros((4, 2)),
        np.array([[0, 1], [2, 1], [0, 0], [0, 0]]),
        np.array([[0, 1], [2, PLACES], [0, 0], [0, 0]]),
        np.full((4, 2), IGNORED),
    ],
    ids=["three ends", "fractions", "ends before it begins", "beyond the text", "no span"],
)
@pytest.mark.parametrize("metric", ["exact_match", "span_f1"])
def test_wrong_spans_are_refused(metric: str, labels: np.ndarray) -> None:
    outputs = [Output(name, (4, PLACES), "float32") for name in ("start_logits", "end_logits")]
    with pytest.raises(InvalidRequest) as refused:
        require_labels(metric, labels, 4, outputs)
    assert refused.value.code == "E_METRIC"


def test_right_spans_are_accepted_of_outputs_by_other_names() -> None:
    outputs = [Output(name, (4, PLACES), "float32") for name in ("begin", "end", "other")]
    require_labels("span_f1:begin+end", np.zeros((4, 2), dtype=np.int64), 4, outputs)


@pytest.mark.parametrize("text", ["span_f1:begin+begin", "span_f1:begin", "span_f1:begin+end+other", "top1:begin+end"])
def test_a_span_has_two_outputs_that_differ(text: str) -> None:
    outputs = [Output(name, (4, PLACES), "float32") for name in ("begin", "end", "other")]
    with pytest.raises(InvalidRequest) as refused:
        require_labels(text, np.zeros((4, 2), dtype=np.int64), 4, outputs)
    assert refused.value.code == "E_METRIC"
