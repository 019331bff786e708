"""A contestant that loses more on corrupted data is found, item by item, and one that loses alike is not."""

from __future__ import annotations

import numpy as np
import pytest
from fairlap.models.metrics.metric import Parts
from fairlap.models.slices.corruptions import ALL, Corrupted, changes_by_corruption, corrupted_scores
from fairlap.models.slices.slice_scores import SliceChange
from fairlap.models.task_metrics import parts_of
from fairlap.request.fields.data.corruption import Corruption, corruptions_in

ITEMS, CLASSES = 500, 4
CORRUPTIONS = corruptions_in(["fog:1", "fog:3", "contrast:2"])
LABELS = np.random.default_rng(0).integers(0, CLASSES, ITEMS)


def answers(metric: str, wrong: float, seed: int) -> tuple[Parts, np.ndarray]:
    drawn = np.random.default_rng(seed)
    best = np.where(drawn.random(ITEMS) < wrong, (LABELS + 1) % CLASSES, LABELS)
    return parts_of(metric, [np.eye(CLASSES)[best]], LABELS), best == LABELS


def contestant(metric: str, wrong: dict[str, float], seed: int = 1) -> tuple[Corrupted, dict[str, np.ndarray]]:
    found = {name: answers(metric, share, seed) for name, share in wrong.items()}
    parts = {each: found[each.text][0] for each in CORRUPTIONS}
    right = {name: hits for name, (_, hits) in found.items()}
    return Corrupted(metric, found["clean"][0], parts), right


EXACT = {"clean": 0.05, "fog:1": 0.1, "fog:3": 0.2, "contrast:2": 0.1}
FRAGILE = {"clean": 0.06, "fog:1": 0.15, "fog:3": 0.4, "contrast:2": 0.12}


def by_slice(metric: str, own: dict[str, float], other: dict[str, float], seed: int = 1) -> dict[str, SliceChange]:
    found = changes_by_corruption(contestant(metric, own, seed)[0], contestant(metric, other)[0], "fp32", "w")
    return {each.slice: each for each in found}


def test_changes_are_means_over_items_and_corruptions_count_alike() -> None:
    changes = by_slice("top1", FRAGILE, EXACT)
    assert set(changes) == {"fog", "contrast", ALL}
    (_, right), (_, before) = contestant("top1", FRAGILE), contestant("top1", EXACT)
    off = {name: right[name].astype(float) - before[name] for name in right}
    fog = (off["fog:1"] + off["fog:3"]) / 2
    assert changes["fog"].change == pytest.approx(fog.mean())
    assert changes["contrast"].change == pytest.approx(off["contrast:2"].mean())
    assert changes[ALL].change == pytest.approx((fog + off["contrast:2"]).mean() / 2)
    assert [each.elsewhere for each in changes.values()] == pytest.approx([off["clean"].mean()] * 3)
    apart = fog - off["clean"]
    assert changes["fog"].standard_error == pytest.approx((apart.var() * ITEMS + 2) ** 0.5 / ITEMS)


@pytest.mark.parametrize("metric", ["top1", "brier"])
def test_what_int8_loses_more_on_corrupted_data_is_shown(metric: str) -> None:
    found = by_slice(metric, FRAGILE, EXACT)[ALL]
    assert found.change is not None
    assert found.elsewhere is not None
    assert found.standard_error is not None
    assert abs(found.change - found.elsewhere) > 4 * found.standard_error


@pytest.mark.slow
def test_contestants_that_lose_alike_are_called_different_in_at_most_5_percent() -> None:
    wrong, runs = 0, 300
    for seed in range(runs):
        found = by_slice("top1", EXACT, EXACT, seed=seed + 2)[ALL]
        assert found.change is not None
        assert found.elsewhere is not None
        assert found.standard_error is not None
        wrong += abs(found.change - found.elsewhere) > 1.96 * found.standard_error
    assert wrong / runs <= 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5


def test_scores_are_by_corruption_and_severity() -> None:
    own, right = contestant("top1", FRAGILE)
    scores = corrupted_scores(own)
    assert set(scores) == {each.text for each in CORRUPTIONS}
    for name, score in scores.items():
        assert score is not None
        assert score.value == pytest.approx(right[name].mean())


def test_one_corruption_is_no_mean_of_several() -> None:
    own = contestant("top1", FRAGILE)[0]
    alone = Corrupted("top1", own.clean, {Corruption("fog", 1): own.parts[CORRUPTIONS[0]]})
    assert [each.slice for each in changes_by_corruption(alone, alone, "fp32", "w")] == ["fog"]
