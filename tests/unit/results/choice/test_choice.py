"""What a choice shows of runs whose times and answers were planted."""

from __future__ import annotations

import random

import numpy as np
import planted_choice
import pytest
from planted_choice import ITEMS, NAMES, TIMES_NS, a_plan, answers, chosen
from runs_for_rows import a_process
from scipy.stats import binomtest, wilcoxon  # type: ignore[import-untyped,unused-ignore]


def test_scores_are_compared_by_mcnemars_test_over_the_same_items() -> None:
    found, right = chosen(), answers()
    for each in found.scores:
        a, b = (right[name.partition(" in ")[0]] for name in (each.a, each.b))
        only_a, only_b = int((a & ~b).sum()), int((b & ~a).sum())
        assert (each.only_a_right, each.only_b_right, each.items_differing) == (only_a, only_b, int((a != b).sum()))
        assert each.difference == pytest.approx(a.mean() - b.mean())
        p = binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
        assert p <= each.p_adjusted <= 1
    assert found.items == ITEMS
    assert found.items_disagreeing == int(np.ptp(np.array(list(right.values()), int), axis=0).sum())


def test_times_are_compared_within_rounds_as_scipy_does_it() -> None:
    found = chosen()
    assert found.blocks == 12
    plan = a_plan("torch", 12)
    logs: dict[str, list[float]] = {name: [] for name in NAMES}
    for number in range(12):
        for block in plan.blocks[number * len(NAMES) : (number + 1) * len(NAMES)]:
            name = plan.works[block.work].model
            factor = 1 + random.Random(f"1 {block.number} 0").gauss(0, 0.02)
            process = a_process(block.number, "torch", TIMES_NS[name] * factor, plan.works[block.work])
            logs[name].append(np.log(process.headline_ns))
    for each in found.times:
        a, b = (np.array(logs[name.partition(" in ")[0]]) for name in (each.a, each.b))
        assert wilcoxon(a - b, method="exact").pvalue <= each.p_adjusted + 1e-12
        assert np.exp((a - b).min()) <= each.ratio <= np.exp((a - b).max())


def test_the_front_has_the_fast_and_the_good_and_the_heavy_copy_is_dominated() -> None:
    found = chosen(noise=0.002)
    front = {each.model: each.front for each in found.candidates}
    assert front == {"small": "on the front", "large": "on the front", "copy": "on the front", "heavy": "dominated"}
    heavy = next(each for each in found.candidates if each.model == "heavy")
    assert {"large in torch", "copy in torch"} == set(heavy.dominated_by)
    assert (found.reason, found.exit_status) == ("not_separated", 3)


@pytest.mark.parametrize(
    ("most", "qualify", "not_shown"),
    [(0.02, {"large", "copy", "heavy"}, set()), (0.001, {"large"}, {"copy", "heavy"}), (0.5, set(NAMES), set())],
)
def test_a_candidate_may_score_so_much_worse_than_the_first_one(
    most: float, qualify: set[str], not_shown: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted_choice, "NAMES", ("large", "copy", "heavy", "small"))
    found = chosen(minimise="time", max_drop=most)
    by = {each.model: each for each in found.candidates}
    assert {name for name, each in by.items() if each.qualifies == "yes"} == qualify
    assert {name for name, each in by.items() if each.qualifies == "unknown"} == not_shown
    lost = answers()["large"].mean() - answers()["small"].mean()
    [drop] = [each for each in found.scores if {each.a, each.b} == {"large in torch", "small in torch"}]
    assert (drop.low > most) == (by["small"].qualifies == "no") == (abs(lost) > most)
    assert found.requirements == (f"score_drop<={most}",)


def test_the_smallest_files_are_recommended_and_equal_ones_by_score_and_unknown_ones_not() -> None:
    sizes = {"small": 300, "large": 200, "copy": 400, "heavy": 500}
    found = chosen(minimise="size", file_bytes=sizes)
    assert found.recommended == ("large in torch",)
    assert {each.model: each.file_bytes for each in found.candidates} == sizes
    equal = chosen(minimise="size", file_bytes={**sizes, "small": 200})
    assert equal.recommended == ("large in torch",)  # whose score is shown to be better
    unknown = chosen(minimise="size", file_bytes={name: size for name, size in sizes.items() if name != "heavy"})
    assert (unknown.reason, unknown.recommended) == ("not_separated", ("large in torch", "heavy in torch"))
    heavy = next(each for each in unknown.candidates if each.model == "heavy")
    assert heavy.file_bytes is None
    assert "file_bytes" in heavy.absent


def test_a_score_that_is_not_the_first_one_s_better_drops_by_less_than_nothing() -> None:
    found = chosen(minimise="time", max_drop=0.001)  # the first candidate is the one that scores worst
    assert {each.model for each in found.candidates if each.qualifies == "yes"} == set(NAMES)


@pytest.mark.parametrize(
    ("require", "minimise", "reason", "names"),
    [
        ("", "time", "recommended", {"small in torch"}),
        ("top1>=90%, memory<1GB", "time", "none_qualifies", set()),
        ("top1>=90%", "time", "not_separated", {"large in torch", "copy in torch"}),
        ("top1>=99.9%", "time", "none_qualifies", set()),
        ("top1>=95%", "time", "requirements_unknown", set()),
        ("top1>=90%", "cost", "not_separated", {"large in torch", "copy in torch"}),
        ("", "memory", "recommended", {"small in torch"}),
    ],
)
def test_requirements_filter_and_one_figure_decides(require: str, minimise: str, reason: str, names: set[str]) -> None:
    found = chosen(require, minimise, price="1EUR/h")
    assert (found.reason, set(found.recommended)) == (reason, names)
    assert all(each.currency == "EUR" for each in found.candidates)


def test_each_contestant_of_each_model_is_a_candidate_and_all_pairs_are_one_family() -> None:
    found = chosen(contestants="torch,jax", blocks=12)
    assert len(found.candidates) == 2 * len(NAMES)
    assert len(found.times) == len(found.scores) == 28
    by_pair = {frozenset((each.a, each.b)): each.outcome for each in found.times}
    assert by_pair[frozenset(("small in torch", "heavy in jax"))] in ("faster", "slower")
    same = [each for each in found.scores if each.a.partition(" in ")[0] == each.b.partition(" in ")[0]]
    assert {(each.outcome, each.items_differing) for each in same} == {("equivalent", 0)}


@pytest.mark.parametrize(("contestants", "enough"), [("torch", 6), ("torch,jax", 11)])
def test_too_few_rounds_for_so_many_pairs_show_no_difference(contestants: str, enough: int) -> None:
    few = chosen(contestants=contestants, blocks=enough - 1)
    assert few.no_time_code == "W_TOO_FEW_BLOCKS"
    assert {each.outcome for each in few.times} <= {"equivalent", "inconclusive"}
    found = chosen(contestants=contestants, blocks=enough)
    assert found.no_time_code == ""
    assert {"faster", "slower"} & {each.outcome for each in found.times}


@pytest.mark.slow
@pytest.mark.parametrize(("contestants", "blocks"), [("torch", 8), ("torch,jax", 12)])
def test_candidates_with_equal_times_are_called_different_in_at_most_5_percent(contestants: str, blocks: int) -> None:
    wrong, runs = 0, 100
    for seed in range(runs):
        found = chosen(
            contestants=contestants, blocks=blocks, times_ns=dict.fromkeys(NAMES, 1e6), noise=0.05, seed=seed
        )
        equal = [each for each in found.times if each.a.partition(" in ")[2] == each.b.partition(" in ")[2]]
        wrong += any(each.outcome in ("faster", "slower") for each in equal)
    assert wrong / runs <= 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5
