"""Metrics of a task: the figures are those of their definitions, intervals cover, wrong labels are refused."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.task_metrics import IGNORED, METRICS, NotFinite, metric_named, parts_of, require_labels, score_of

ITEMS, CLASSES = 40, 7


@pytest.fixture
def scores() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((ITEMS, CLASSES)).astype(np.float32)


@pytest.fixture
def labels() -> np.ndarray:
    return np.random.default_rng(1).integers(0, CLASSES, ITEMS)


def in_batches(metric: str, outputs: np.ndarray, labels: np.ndarray, size: int = 16) -> float:
    places = range(0, len(outputs), size)
    return score_of(metric, [parts_of(metric, outputs[at : at + size], labels[at : at + size]) for at in places]).value


def test_each_metric_is_its_definition(scores: np.ndarray, labels: np.ndarray) -> None:
    order = np.argsort(-scores, axis=1)
    assert in_batches("top1", scores, labels) == pytest.approx(np.mean(order[:, 0] == labels))
    assert in_batches("top5", scores, labels) == pytest.approx(np.mean((order[:, :5] == labels[:, None]).any(axis=1)))
    shares = np.exp(scores.astype(np.float64)) / np.exp(scores.astype(np.float64)).sum(axis=1, keepdims=True)
    surprise = -np.log(shares[np.arange(ITEMS), labels])
    assert in_batches("perplexity", scores, labels) == pytest.approx(np.exp(surprise.mean()))
    assert in_batches("mse", scores, scores + 0.5) == pytest.approx(0.25)
    assert in_batches("mae", scores, scores - 0.5) == pytest.approx(0.5, rel=1e-6)


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_means_over_classes_are_scikit_learn_s(name: str, scores: np.ndarray, labels: np.ndarray) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="`make test` installs it and runs this")
    of_classes = getattr(metrics, f"{name}_score")
    expected = of_classes(labels, scores.argmax(axis=1), average="macro", zero_division=0.0)
    assert in_batches(name, scores, labels) == pytest.approx(expected)


def test_ties_with_the_right_class_are_no_hits() -> None:
    assert in_batches("top1", np.zeros((3, 4), np.float32), np.zeros(3, int)) == 0.0


def test_rows_that_do_not_count_are_left_out(scores: np.ndarray, labels: np.ndarray) -> None:
    rows, own = scores.reshape(10, 4, CLASSES), labels.reshape(10, 4).copy()
    own[:, 2:] = IGNORED
    kept = (rows[:, :2].reshape(-1, CLASSES), own[:, :2].reshape(-1))
    for metric in ("top1", "perplexity"):
        assert in_batches(metric, rows, own, 3) == pytest.approx(in_batches(metric, *kept))


def test_intervals_are_wilson_s_for_shares_and_of_items_else(scores: np.ndarray, labels: np.ndarray) -> None:
    share = score_of("top1", [parts_of("top1", scores, labels)])
    z, n, p = 1.959964, ITEMS, share.value
    middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert share.low == pytest.approx((middle - half) / (1 + z * z / n), rel=1e-5)
    assert share.high == pytest.approx((middle + half) / (1 + z * z / n), rel=1e-5)
    assert (share.interval, share.items) == ("Wilson", ITEMS)
    by_rows = score_of("top1", [parts_of("top1", scores.reshape(10, 4, CLASSES), labels.reshape(10, 4))])
    assert by_rows.value == share.value
    assert by_rows.interval.startswith("bootstrap")
    assert by_rows.items == 10
    perfect = score_of("f1", [parts_of("f1", np.eye(CLASSES)[labels], labels)])
    assert (perfect.value, perfect.low, perfect.high) == (1.0, None, None)
    one = score_of("mse", [parts_of("mse", scores[:1], scores[:1])])
    assert (one.low, one.high, one.interval) == (None, None, "")


def test_a_bootstrap_interval_covers_the_true_mean_about_as_often_as_it_states() -> None:
    drawn, covered = np.random.default_rng(3), 0
    for _ in range(100):
        off = drawn.normal(1.0, 0.3, (60, 1))
        found = score_of("mae", [parts_of("mae", off, np.zeros((60, 1)))])
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1.0 <= found.high
    assert 86 <= covered <= 99


def test_an_answer_that_is_not_finite_has_no_score(scores: np.ndarray, labels: np.ndarray) -> None:
    scores[3, 2] = np.nan
    with pytest.raises(NotFinite):
        parts_of("top1", scores, labels)


@pytest.mark.parametrize(
    ("metric", "wrong"),
    [
        ("top1", np.zeros(ITEMS + 1, int)),
        ("top1", np.zeros((ITEMS, 1), int)),
        ("top1", np.zeros(ITEMS)),
        ("top1", np.full(ITEMS, CLASSES)),
        ("top1", np.full(ITEMS, -1)),
        ("top1", np.full(ITEMS, IGNORED)),
        ("mse", np.zeros(ITEMS)),
        ("mse", np.full((ITEMS, CLASSES), np.nan)),
    ],
)
def test_labels_that_do_not_fit_are_refused_in_one_line(metric: str, wrong: np.ndarray) -> None:
    with pytest.raises(FairlapError) as refused:
        require_labels(metric, wrong, ITEMS, "logits", (8, CLASSES))
    assert refused.value.code == "E_METRIC"
    assert "\n" not in str(refused.value)


def test_labels_that_fit_are_accepted(labels: np.ndarray, scores: np.ndarray) -> None:
    for metric in METRICS:
        own = labels if METRICS[metric].labels == "class" else scores
        require_labels(metric, own, ITEMS, "logits", (8, CLASSES))


def test_unknown_metrics_and_too_few_classes_are_refused() -> None:
    with pytest.raises(FairlapError) as refused:
        metric_named("top3")
    assert refused.value.code == "E_METRIC"
    assert metric_named("top1:logits")[1] == "logits"
    with pytest.raises(FairlapError) as refused:
        require_labels("top5", np.zeros(ITEMS, int), ITEMS, "logits", (8, 5))
    assert refused.value.code == "E_METRIC"
