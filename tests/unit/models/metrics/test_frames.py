"""Error rates of what frames spell are jiwer's of the texts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from fairlap.bench_models.conformer.spec import CHARACTERS
from fairlap.errors import FairlapError
from fairlap.models.metrics.metric import IGNORED, Output
from fairlap.models.task_metrics import metric_named, parts_of, require_labels, value_of
from machine_marks import needed

jiwer = needed("jiwer")

RIGHT = ["the cat sat", "on a mat", "where it sleeps"]
GIVEN = ["the bat sat", "on mat", "there it sleeps on"]
SPACE = CHARACTERS.index(" ")
FRAMES = 60


def ids(text: str) -> list[int]:
    return [CHARACTERS.index(each) for each in text]


def spelling(text: str) -> np.ndarray:
    """Score frames so that the likeliest ones spell the text: each character twice, and a blank."""
    path = [each for character in ids(text) for each in (character, character, 0)]
    best = np.array([*path, *[0] * (FRAMES - len(path))])
    scores: np.ndarray = np.eye(len(CHARACTERS), dtype=np.float32)[best]
    return scores


@pytest.fixture
def labels() -> np.ndarray:
    longest = max(map(len, RIGHT))
    return np.array([[*ids(text), *[IGNORED] * (longest - len(text))] for text in RIGHT])


OUTPUT = Output("logits", (3, FRAMES, len(CHARACTERS)), "float32")


def test_error_rates_of_characters_and_of_words_are_those_of_the_texts(labels: np.ndarray) -> None:
    outputs = np.stack([spelling(text) for text in GIVEN])
    for metric, expected in (("ctc_cer", jiwer.cer(RIGHT, GIVEN)), (f"ctc_wer@{SPACE}", jiwer.wer(RIGHT, GIVEN))):
        require_labels(metric, labels, 3, [OUTPUT])
        batches = [parts_of(metric, [outputs[:2]], labels[:2]), parts_of(metric, [outputs[2:]], labels[2:])]
        assert value_of(metric, batches) == pytest.approx(expected)
        assert metric_named(metric).better == "lower"


@pytest.mark.parametrize(
    ("metric", "output", "found", "why"),
    [
        ("ctc_cer", Output("ids", (3, 9), "int64"), [[1]] * 3, "ids is [3, 9] of int64"),
        ("ctc_cer", OUTPUT, [1, 2, 3], "these are [3] of int64"),
        ("ctc_cer", OUTPUT, [[1, 0]] * 3, "within 1..28"),
        ("ctc_cer", OUTPUT, [[1], [29], [2]], "within 1..28"),
        ("ctc_wer@29", OUTPUT, [[1]] * 3, "not within 1..28"),
        ("ctc_cer", OUTPUT, [[1], [IGNORED], [2]], "item 1 have none"),
        ("ctc_wer@1", OUTPUT, [[2], [1], [2]], "item 1 have none"),
    ],
)
def test_labels_that_do_not_fit_are_refused(metric: str, output: Output, found: list[object], why: str) -> None:
    with pytest.raises(FairlapError, match=re.escape(why)) as refused:
        require_labels(metric, np.array(found), 3, [output])
    assert refused.value.code == "E_METRIC"
