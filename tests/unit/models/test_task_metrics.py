"""Metrics of a task: the figures are those of their definitions, intervals cover, wrong labels are refused."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.metrics.metric import IGNORED, Output
from fairlap.models.task_metrics import (
    METRICS,
    NotFinite,
    Score,
    metric_named,
    parts_of,
    require_installed,
    require_labels,
    score_of,
    scored_outputs,
    value_of,
)

ITEMS, CLASSES = 40, 7


@pytest.fixture
def scores() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((ITEMS, CLASSES)).astype(np.float32)


@pytest.fixture
def labels() -> np.ndarray:
    return np.random.default_rng(1).integers(0, CLASSES, ITEMS)


def in_batches(metric: str, outputs: np.ndarray, labels: np.ndarray, size: int = 16) -> float:
    places = range(0, len(outputs), size)
    return value_of(metric, [parts_of(metric, [outputs[at : at + size]], labels[at : at + size]) for at in places])


def whole(metric: str, outputs: np.ndarray, labels: np.ndarray) -> Score:
    return score_of(metric, [parts_of(metric, [outputs], labels)])


def logits(*shape: int) -> list[Output]:
    return [Output("logits", shape, "float32")]


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
    share = whole("top1", scores, labels)
    z, n, p = 1.959964, ITEMS, share.value
    middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    assert share.low == pytest.approx((middle - half) / (1 + z * z / n), rel=1e-5)
    assert share.high == pytest.approx((middle + half) / (1 + z * z / n), rel=1e-5)
    assert (share.interval, share.items) == ("Wilson", ITEMS)
    by_rows = whole("top1", scores.reshape(10, 4, CLASSES), labels.reshape(10, 4))
    assert by_rows.value == share.value
    assert by_rows.interval.startswith("bootstrap")
    assert by_rows.items == 10
    assert (share.why_no_interval, by_rows.why_no_interval) == ("", "")


def test_an_interval_that_is_absent_has_its_reason(scores: np.ndarray, labels: np.ndarray) -> None:
    pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
    perfect = whole("mae", scores, scores)
    one = whole("mse", scores[:1], scores[:1])
    rare = whole("roc_auc", scores[:, :2], np.array([1] + [0] * (ITEMS - 1)))  # a resample often lacks the class
    many = whole("roc_auc", np.tile(scores, (100, 1)), np.tile(labels, 100))
    assert perfect.value == 0.0
    for each in (perfect, one, rare, many):
        assert (each.low, each.high, each.interval) == (None, None, "")
    assert len({each.why_no_interval for each in (perfect, one, rare, many)} - {""}) == 4


@pytest.mark.slow
def test_a_bootstrap_interval_covers_the_true_mean_about_as_often_as_it_states() -> None:
    drawn, covered = np.random.default_rng(3), 0
    for _ in range(100):
        off = drawn.normal(1.0, 0.3, (60, 1))
        found = whole("mae", off, np.zeros((60, 1)))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 1.0 <= found.high
    assert 86 <= covered <= 99


def test_an_answer_that_is_not_finite_has_no_score(scores: np.ndarray, labels: np.ndarray) -> None:
    scores[3, 2] = np.nan
    with pytest.raises(NotFinite):
        parts_of("top1", [scores], labels)


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
        ("roc_auc", np.full(ITEMS, 3)),
        ("r2", np.ones((ITEMS, CLASSES))),
        ("map", np.zeros(ITEMS, int)),
        ("bleu", np.zeros((ITEMS, 4), int)),
    ],
)
def test_labels_that_do_not_fit_are_refused_in_one_line(metric: str, wrong: np.ndarray) -> None:
    with pytest.raises(FairlapError) as refused:
        require_labels(metric, wrong, ITEMS, logits(8, CLASSES))
    assert refused.value.code == "E_METRIC"
    assert "\n" not in str(refused.value)


def test_labels_that_fit_are_accepted(labels: np.ndarray, scores: np.ndarray) -> None:
    for metric in ("top1", "top5", "precision", "recall", "f1", "roc_auc", "perplexity"):
        require_labels(metric, labels, ITEMS, logits(8, CLASSES))
    for metric in ("mse", "mae", "r2"):
        require_labels(metric, scores, ITEMS, logits(8, CLASSES))


def test_unknown_metrics_and_too_few_classes_are_refused() -> None:
    with pytest.raises(FairlapError) as refused:
        metric_named("top3")
    assert refused.value.code == "E_METRIC"
    with pytest.raises(FairlapError) as refused:
        require_labels("top5", np.zeros(ITEMS, int), ITEMS, logits(8, 5))
    assert refused.value.code == "E_METRIC"


def test_outputs_are_the_first_one_those_of_the_metric_or_those_that_are_named() -> None:
    assert scored_outputs("top1", ["a", "b"]) == ("a",)
    assert scored_outputs("top1:b", ["a", "b"]) == ("b",)
    assert scored_outputs("map", ["classes", "boxes", "scores"]) == ("boxes", "scores", "classes")
    assert scored_outputs("map:a+b+c", ["c", "b", "a"]) == ("a", "b", "c")
    for text in ("top1:c", "top1:a+b", "top1:", "map", "map:a", "map:a+b+d"):
        with pytest.raises(FairlapError) as refused:
            scored_outputs(text, ["a", "b"])
        assert refused.value.code == "E_METRIC"


@pytest.mark.parametrize("metric", [name for name, each in METRICS.items() if each.package])
def test_a_metric_whose_package_is_missing_names_what_to_install(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlap.models.task_metrics.find_spec", lambda _name: None)
    with pytest.raises(FairlapError) as refused:
        require_installed(f"{metric}:out")
    assert refused.value.code == "E_METRIC"
    package = METRICS[metric].package
    assert package is not None
    assert f"fairlap[{package.extra}]" in str(refused.value)
