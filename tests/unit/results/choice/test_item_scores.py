"""Which test compares the scores of a metric follows from what the metric makes of each item."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.models.metrics.metric import IGNORED, Parts
from fairlap.models.task_metrics import parts_of
from fairlap.results.choice.item_scores import compared_scores
from scipy.stats import binomtest, ttest_rel  # type: ignore[import-untyped,unused-ignore]

ITEMS, CLASSES = 300, 5


def drawn(*, wrong: float, seed: int = 0, ignored: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw scores of classes and labels, some of which do not count."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, ITEMS)
    scores = np.eye(CLASSES)[np.where(random.random(ITEMS) < wrong, (labels + 1) % CLASSES, labels)]
    labels = np.where(np.arange(ITEMS) < ignored, IGNORED, labels)
    return scores + random.normal(0, 0.1, scores.shape), labels


def two(metric: str, **options: int) -> tuple[dict[str, Parts], dict[str, np.ndarray], np.ndarray]:
    good, labels = drawn(wrong=0.05, **options)
    bad, _ = drawn(wrong=0.3, **options)
    scores = {"good": good, "bad": bad}
    return {name: parts_of(metric, [each], labels) for name, each in scores.items()}, scores, labels


@pytest.mark.parametrize("ignored", [0, 40])
def test_right_or_wrong_items_take_mcnemars_test_and_ignored_ones_do_not_count(ignored: int) -> None:
    items, scores, labels = two("top1", ignored=ignored)
    found = compared_scores("top1", items, 0.01)
    right = {name: (each.argmax(axis=1) == labels)[labels != IGNORED] for name, each in scores.items()}
    only = int((right["good"] & ~right["bad"]).sum()), int((right["bad"] & ~right["good"]).sum())
    [compared] = found.comparisons
    assert (found.disagreements["good", "bad"].only_a, found.disagreements["good", "bad"].only_b) == only
    assert compared.p == pytest.approx(float(binomtest(only[0], sum(only)).pvalue))
    assert compared.difference == pytest.approx(right["good"].mean() - right["bad"].mean())


def test_a_mean_of_items_is_resampled_and_agrees_with_students_paired_test() -> None:
    items, _, _ = two("perplexity")
    [compared] = compared_scores("perplexity", items, 0.01).comparisons
    assert compared.verdict.value == "faster"  # which reads better: its perplexity is lower
    random = np.random.default_rng(1)
    values = {name: random.normal(size=(ITEMS, 3)) for name in "ab"}
    truth = np.zeros((ITEMS, 3))
    of_values = {name: parts_of("mse", [each], truth) for name, each in values.items()}
    [compared] = compared_scores("mse", of_values, 0.01).comparisons
    by_item = [np.square(values[name]).mean(axis=1) for name in "ab"]
    assert compared.difference == pytest.approx(by_item[0].mean() - by_item[1].mean())
    assert compared.p == pytest.approx(float(ttest_rel(*by_item).pvalue), abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["f1", "roc_auc"])
def test_metrics_of_all_items_together_are_resampled(metric: str) -> None:
    pytest.importorskip("sklearn", reason="`make test` installs it and runs this")
    items, _, _ = two(metric)
    found = compared_scores(metric, items, 0.01)
    assert [each.verdict.value for each in found.comparisons] == ["faster"]
    assert found.disagreements["good", "bad"].only_a is None


def test_chrf_of_a_whole_corpus_is_resampled() -> None:
    sacrebleu = pytest.importorskip("sacrebleu", reason="`make test` installs it and runs this")
    random = np.random.default_rng(0)
    labels = random.integers(0, 20, (60, 30))
    given = {
        name: np.where(random.random(labels.shape) < wrong, 20, labels) for name, wrong in (("a", 0.1), ("b", 0.3))
    }
    parts = {name: parts_of("chrf", [each], labels) for name, each in given.items()}
    [compared] = compared_scores("chrf", parts, 0.01).comparisons
    assert compared.verdict.value == "faster"  # which reads better
    texts = {name: ["".join(chr(ord("a") + each) for each in row) for row in rows] for name, rows in given.items()}
    right = ["".join(chr(ord("a") + each) for each in row) for row in labels]
    one, other = (sacrebleu.corpus_chrf(texts[name], [right]).score for name in "ab")
    assert compared.difference == pytest.approx(one - other)


def test_few_items_and_too_many_numbers_have_no_verdict_but_the_reason() -> None:
    few = {name: (np.ones(20), np.ones(20)) for name in "ab"}
    found = compared_scores("mse", few, 0.01)
    assert not found.comparisons
    assert found.why_not
    many = {name: (np.zeros((ITEMS, 1, 100)), np.zeros((ITEMS, 1))) for name in "ab"}
    assert compared_scores("roc_auc", many, 0.01).why_not


def test_models_with_other_numbers_of_classes_disagree_in_form_everywhere() -> None:
    many = 10 * ITEMS  # too many to be resampled
    items = {f"{classes} classes": (np.zeros((many, 1, classes)), np.zeros((many, 1))) for classes in (9, 12)}
    assert compared_scores("roc_auc", items, 0.01).items_disagreeing == many
