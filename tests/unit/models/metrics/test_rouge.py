"""ROUGE is that of rouge-score, with each token id as a word."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.models.metrics.metric import IGNORED
from fairlap.models.task_metrics import parts_of, score_of, value_of
from machine_marks import needs

needs("rouge_score")

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dog", "on", "log"]
# The example that rouge-score's own documentation has, where it scores 0.7059 and 0.5882 by rouge1 and rougeL.
RIGHT = "the quick brown fox jumps over the lazy dog"
GIVEN = "the quick brown dog jumps on the log"
PAIRS_IN_BOTH, PAIRS_GIVEN, PAIRS_RIGHT = 2, 7, 8  # "the quick" and "quick brown"


def ids(text: str, length: int = 9) -> list[int]:
    found = [WORDS.index(word) for word in text.split()]
    return [*found, *[IGNORED] * (length - len(found))]


def test_the_example_of_its_documentation_has_the_scores_that_are_given_there() -> None:
    outputs, labels = np.array([ids(GIVEN)]), np.array([ids(RIGHT)])
    expected = {
        "rouge1": 0.7058823529411765,
        "rougeL": 0.5882352941176471,
        "rouge2": 2 * PAIRS_IN_BOTH / (PAIRS_GIVEN + PAIRS_RIGHT),
    }
    for metric, value in expected.items():
        assert value_of(metric, [parts_of(metric, [outputs], labels)]) == pytest.approx(value, abs=1e-12)


def test_the_figure_is_the_mean_over_items_with_an_interval() -> None:
    labels = np.array([ids(RIGHT)] * 8)
    outputs = np.array([ids(RIGHT), ids(GIVEN), ids("on log"), [IGNORED] * 9] * 2)  # the last of each four is empty
    found = score_of("rouge1", [parts_of("rouge1", [outputs[at : at + 4]], labels[at : at + 4]) for at in (0, 4)])
    assert found.value == pytest.approx((1 + 0.7058823529411765) / 4)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high
    scores = np.eye(len(WORDS))[labels]  # of all ids at each place
    assert value_of("rougeL", [parts_of("rougeL", [scores], labels)]) == 1.0
