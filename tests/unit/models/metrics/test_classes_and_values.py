"""ROC AUC and R squared are scikit-learn's, of scores as contestants give them."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.models.metrics.metric import IGNORED
from fairlap.models.task_metrics import parts_of, score_of, value_of
from machine_marks import needed
from scipy.special import softmax  # type: ignore[import-untyped,unused-ignore]

metrics = needed("sklearn.metrics")

ITEMS = 60
RNG = np.random.default_rng(5)


def value(metric: str, outputs: np.ndarray, labels: np.ndarray) -> float:
    halves = [slice(0, ITEMS // 2), slice(ITEMS // 2, None)]
    return value_of(metric, [parts_of(metric, [outputs[half]], labels[half]) for half in halves])


def test_the_area_of_two_classes_is_that_of_the_second() -> None:
    labels = RNG.integers(0, 2, ITEMS)
    scores = RNG.standard_normal((ITEMS, 2)).astype(np.float32)
    scores[:, 1] += labels
    assert value("roc_auc", scores, labels) == pytest.approx(metrics.roc_auc_score(labels, scores[:, 1] - scores[:, 0]))
    assert value("roc_auc", np.eye(2)[labels], labels) == 1.0
    assert value("roc_auc", np.eye(2)[1 - labels], labels) == 0.0


def test_the_area_of_several_classes_is_the_mean_of_each_against_the_others() -> None:
    labels = RNG.integers(0, 4, ITEMS)
    scores = RNG.standard_normal((ITEMS, 4)) + np.eye(4)[labels]
    shares = softmax(scores, axis=1)
    expected = metrics.roc_auc_score(labels, shares, multi_class="ovr", average="macro")
    assert value("roc_auc", scores, labels) == pytest.approx(expected)
    # Other shares than the softmax of themselves rank items in another order.
    assert value("roc_auc", shares, labels) == pytest.approx(expected)
    assert value("roc_auc", softmax(shares, axis=1) * 2, labels) != pytest.approx(expected, abs=1e-6)


def test_a_class_without_a_label_and_rows_that_do_not_count_are_left_out_of_the_area() -> None:
    labels = RNG.integers(0, 3, ITEMS)
    scores = RNG.standard_normal((ITEMS, 4)) + np.eye(4)[labels]
    shares = softmax(scores, axis=1)
    each = [metrics.roc_auc_score(labels == own, shares[:, own]) for own in range(3)]
    assert value("roc_auc", scores, labels) == pytest.approx(np.mean(each))
    fewer = np.where(np.arange(ITEMS) % 3 == 0, IGNORED, labels)
    kept = fewer != IGNORED
    each = [metrics.roc_auc_score(labels[kept] == own, shares[kept, own]) for own in range(3)]
    assert value("roc_auc", scores, fewer) == pytest.approx(np.mean(each))


@pytest.mark.slow
def test_the_interval_of_an_area_is_over_items() -> None:
    labels = np.arange(ITEMS) % 2
    scores = RNG.standard_normal((ITEMS, 2)) + 0.5 * np.eye(2)[labels]
    found = score_of("roc_auc", [parts_of("roc_auc", [scores], labels)])
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < found.value < found.high < 1


def test_r_squared_is_of_the_variance_of_all_columns() -> None:
    labels = RNG.standard_normal((ITEMS, 2, 3))
    outputs = (labels + 0.5 * RNG.standard_normal(labels.shape)).astype(np.float32)
    flat = [each.reshape(ITEMS, -1) for each in (labels, outputs)]
    expected = metrics.r2_score(*flat, multioutput="variance_weighted")
    assert value("r2", outputs, labels) == pytest.approx(expected)
    assert expected == pytest.approx(1 - np.sum((labels - outputs) ** 2) / np.sum((labels - labels.mean(axis=0)) ** 2))
    assert value("r2", labels, labels) == 1.0
    assert value("r2", np.broadcast_to(labels.mean(axis=0), labels.shape), labels) == pytest.approx(0.0)
