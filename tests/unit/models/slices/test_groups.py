"""Scores by group are those of fairlearn and of sums by hand, and a group that alone changes is found."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.models.metrics.metric import IGNORED
from fairlap.models.slices.figures import FEWEST_DIFFERING
from fairlap.models.slices.groups import Grouped, changes_by_group, scores_by_group
from fairlap.models.task_metrics import parts_of

ITEMS, CLASSES = 600, 3
NAMES = ("old", "young", "unknown")
DRAWN = np.random.default_rng(0)
GROUPS = DRAWN.choice(3, size=ITEMS, p=(0.5, 0.3, 0.2)).astype(np.int32)
LABELS = DRAWN.integers(0, CLASSES, ITEMS)
BEST = np.where(DRAWN.random(ITEMS) < 0.15, (LABELS + 1) % CLASSES, LABELS)
WORSE = np.where((GROUPS == 1) & (DRAWN.random(ITEMS) < 0.4), (BEST + 1) % CLASSES, BEST)


def grouped(metric: str, best: np.ndarray, labels: np.ndarray = LABELS, groups: np.ndarray = GROUPS) -> Grouped:
    scores = np.eye(CLASSES)[best] + 0.01 * DRAWN.random((len(best), CLASSES))
    return Grouped(metric, parts_of(metric, [scores], labels), groups, NAMES)


def test_shares_by_group_and_their_change_are_those_by_hand() -> None:
    before, after = grouped("top1", BEST), grouped("top1", WORSE)
    scores = scores_by_group(after)
    changes = {each.slice: each for each in changes_by_group(after, before, "torch", "w")}
    for number, name in enumerate(NAMES):
        inside = np.equal(GROUPS, number)
        right, right_before = (WORSE == LABELS), (BEST == LABELS)
        found = scores[name]
        assert found is not None
        assert found.value == pytest.approx(right[inside].mean())
        assert found.items == int(inside.sum())
        assert found.interval == "Wilson"
        assert changes[name].change == pytest.approx(right[inside].mean() - right_before[inside].mean())
        assert changes[name].elsewhere == pytest.approx(right[~inside].mean() - right_before[~inside].mean())
        assert (changes[name].against, changes[name].against_work) == ("torch", "w")


@pytest.mark.parametrize(("metric", "name"), [("top1", "accuracy_score"), ("f1@2", "f1_score")])
def test_scores_and_their_largest_difference_are_those_of_fairlearn(metric: str, name: str) -> None:
    metrics = pytest.importorskip("fairlearn.metrics", reason="`make test` installs it and runs this")
    from sklearn import metrics as of_scikit_learn

    by_hand = getattr(of_scikit_learn, name)
    truth, found = (LABELS, WORSE) if metric == "top1" else (LABELS == 2, WORSE == 2)
    frame = metrics.MetricFrame(metrics=by_hand, y_true=truth, y_pred=found, sensitive_features=GROUPS)
    scores = {group: score.value for group, score in scores_by_group(grouped(metric, WORSE)).items() if score}
    assert [scores[each] for each in NAMES] == pytest.approx([frame.by_group[number] for number in range(3)])
    assert max(scores.values()) - min(scores.values()) == pytest.approx(frame.difference())


def test_other_metrics_are_resampled_within_groups_and_show_the_same_group() -> None:
    before, after = grouped("brier", BEST), grouped("brier", WORSE)
    changes = {each.slice: each for each in changes_by_group(after, before, "torch", "w")}
    found = changes["young"]
    assert found.change is not None
    assert found.elsewhere is not None
    assert found.standard_error is not None
    assert found.change - found.elsewhere > 4 * found.standard_error
    per_item = after.parts[0] - before.parts[0]
    inside = GROUPS == 1
    by_hand = sum(per_item[part].var(ddof=1) / part.sum() for part in (inside, ~inside)) ** 0.5
    assert found.standard_error == pytest.approx(by_hand, rel=0.25)


def test_what_cannot_be_judged_says_why() -> None:
    few = GROUPS.copy()
    few[np.flatnonzero(GROUPS == 2)[20:]] = 0
    changes = {each.slice: each for each in changes_by_group(
        grouped("brier", WORSE, groups=few), grouped("brier", BEST, groups=few), "torch", "w"
    )}  # fmt: skip
    assert changes["unknown"].standard_error is None
    assert changes["unknown"].why_not
    assert not changes["young"].why_not
    alike = grouped("mcc", BEST)
    others = BEST.copy()
    others[: FEWEST_DIFFERING - 1] = (others[: FEWEST_DIFFERING - 1] + 1) % CLASSES
    assert all(each.why_not for each in changes_by_group(alike, grouped("mcc", others), "torch", "w"))


def test_a_group_without_a_figure_has_none_and_ignored_items_do_not_count() -> None:
    labels = np.where(GROUPS == 2, IGNORED, LABELS)
    found = grouped("top1", BEST, labels)
    assert scores_by_group(found)["unknown"] is None
    (why,) = {each.why_not for each in changes_by_group(found, found, "torch", "w") if each.slice == "unknown"}
    assert why
