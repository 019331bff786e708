"""Rankings, calibration, correlations and the figures of one class are those of SciPy, scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.models.metrics.metric import IGNORED, Output
from fairlap.models.task_metrics import found_metric, metric_named, parts_of, require_labels, score_of, value_of
from fairlap.results.decision.requirements import requirements_of
from fairlap.results.quantities.row_quantities import row_quantity
from machine_marks import needed
from scipy import stats  # type: ignore[import-untyped,unused-ignore]
from scipy.special import softmax  # type: ignore[import-untyped,unused-ignore]

metrics = needed("sklearn.metrics")

ITEMS, CLASSES = 60, 5
RNG = np.random.default_rng(8)
LABELS = RNG.integers(0, CLASSES, ITEMS)
SCORES = RNG.standard_normal((ITEMS, CLASSES)) + np.eye(CLASSES)[LABELS]


def value(metric: str, outputs: np.ndarray, labels: np.ndarray) -> float:
    halves = [slice(0, ITEMS // 2), slice(ITEMS // 2, None)]
    return value_of(metric, [parts_of(metric, [outputs[half]], labels[half]) for half in halves])


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_figures_of_one_class_are_scikit_learn_s(name: str) -> None:
    for number in range(CLASSES):
        by_class = getattr(metrics, f"{name}_score")(LABELS, SCORES.argmax(axis=1), average=None)
        assert value(f"{name}@{number}", SCORES, LABELS) == pytest.approx(by_class[number])


def test_matthews_correlation_is_scikit_learn_s() -> None:
    assert value("mcc", SCORES, LABELS) == pytest.approx(metrics.matthews_corrcoef(LABELS, SCORES.argmax(axis=1)))


def test_brier_s_score_of_two_classes_is_twice_that_of_one_of_them() -> None:
    labels = LABELS % 2
    scores = SCORES[:, :2]
    of_one = metrics.brier_score_loss(labels, softmax(scores, axis=1)[:, 1])
    assert value("brier", scores, labels) == pytest.approx(2 * of_one)
    assert value("brier", softmax(scores, axis=1), labels) == pytest.approx(2 * of_one)
    assert value("brier", np.eye(2)[labels], labels) == 0
    assert value("brier", np.eye(2)[1 - labels], labels) == 2


def test_a_share_that_is_said_too_high_is_the_calibration_error() -> None:
    shares = np.tile([0.8, 0.15, 0.05], (ITEMS, 1))
    labels = np.where(np.arange(ITEMS) % 10 < 6, 0, 1)
    assert value("ece", shares, labels) == pytest.approx(0.2)
    assert value("ece", shares, np.where(np.arange(ITEMS) % 10 < 8, 0, 1)) == pytest.approx(0.0)
    ignored = np.where(labels == 0, IGNORED, labels)
    assert value("ece", shares, ignored) == pytest.approx(0.8)


def test_errors_of_several_bins_are_weighted_by_their_rows() -> None:
    """One bin says 0.55 and is right half of the time, the other says 0.95 and always is."""
    shares = np.where(np.arange(ITEMS)[:, None] < 20, [[0.55, 0.45]], [[0.95, 0.05]])
    labels = np.where(np.arange(ITEMS) < 10, 1, 0)
    assert value("ece", shares, labels) == pytest.approx((20 * 0.05 + 40 * 0.05) / 60)


def test_gains_are_scikit_learn_s() -> None:
    relevances = RNG.integers(0, 3, (ITEMS, CLASSES))
    relevances[:, 0] = 1
    for first in (1, 3, CLASSES):
        expected = metrics.ndcg_score(relevances, SCORES, k=first)
        assert value(f"ndcg@{first}", SCORES, relevances) == pytest.approx(expected)
    none_relevant = np.where(np.arange(ITEMS)[:, None] < 30, 0, relevances)
    expected = metrics.ndcg_score(relevances[30:], SCORES[30:], k=3)
    assert value("ndcg@3", SCORES, none_relevant) == pytest.approx(expected)


def test_hits_among_the_first_are_scikit_learn_s() -> None:
    for first in (1, 2, 4):
        expected = metrics.top_k_accuracy_score(LABELS, SCORES, k=first)
        assert value(f"hit@{first}", SCORES, LABELS) == pytest.approx(expected)
    assert score_of("hit@2", [parts_of("hit@2", [SCORES], LABELS)]).interval == "Wilson"


@pytest.mark.slow_but("spearman")
@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_correlations_are_scipy_s(name: str) -> None:
    labels = RNG.standard_normal(ITEMS)
    outputs = labels + RNG.standard_normal(ITEMS)
    expected = getattr(stats, f"{name}r")(outputs, labels).statistic
    assert value(name, outputs, labels) == pytest.approx(expected)
    both = value(name, np.stack([outputs, -outputs], axis=1), np.stack([labels, labels], axis=1))
    assert both == pytest.approx(0.0, abs=1e-12)
    found = score_of(name, [parts_of(name, [outputs], labels)])
    assert found.low is not None
    assert found.high is not None
    assert found.low < expected < found.high


def test_answers_that_do_not_differ_have_no_correlation() -> None:
    assert np.isnan(value("pearson", np.ones(ITEMS), RNG.standard_normal(ITEMS)))


@pytest.mark.parametrize(
    ("metric", "labels"),
    [
        ("f1@7", LABELS),
        ("f1@4", LABELS % 4),
        ("hit@5", LABELS),
        ("hit@0", LABELS),
        ("mse", np.full((ITEMS, CLASSES), np.nan)),
        ("ndcg@3", LABELS),
        ("ndcg@9", np.ones((ITEMS, CLASSES))),
        ("ndcg@0", np.ones((ITEMS, CLASSES))),
        ("ndcg@3", -np.ones((ITEMS, CLASSES))),
        ("ndcg@3", np.zeros((ITEMS, CLASSES))),
        ("mcc", np.zeros(ITEMS, dtype=np.int64)),
        ("pearson", np.ones((ITEMS, CLASSES))),
    ],
)
def test_labels_that_do_not_fit_are_refused(metric: str, labels: np.ndarray) -> None:
    with pytest.raises(InvalidRequest) as refused:
        require_labels(metric, labels, ITEMS, [Output("scores", SCORES.shape, "float32")])
    assert refused.value.code == "E_METRIC"


@pytest.mark.parametrize("text", ["f1@", "f1@x", "top1@3", "f1@-1", "@2", "f1@2@3"])
def test_other_numbers_are_no_metric(text: str) -> None:
    assert found_metric(text) is None
    with pytest.raises(InvalidRequest):
        metric_named(text)


def test_a_metric_with_a_number_can_be_required_and_shown() -> None:
    [found] = requirements_of("f1@2:logits >= 90%")
    assert (found.metric, found.limit) == ("f1@2:logits", 0.9)
    assert row_quantity("ndcg@10").unit == "share"
