"""From blocks to verdicts."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from fairlap.verdict import (
    LATENCY,
    THROUGHPUT,
    BadInput,
    BadOption,
    Comparison,
    Design,
    Verdict,
    block_table,
    decided,
    judge,
)
from fairlap.verdict.warnings import ModesUnderneath, NoSpread, ScatteredBlocks, SkewedDifferences, TooFewBlocks
from hypothesis import given, settings
from hypothesis import strategies as st

STEPS = np.array([0.7, -0.3, 0.1, -0.9, 0.4, 0.2, -0.6, 0.8, -0.1, 0.5, -0.4, -0.5])


def pair(log_ratio: float, spread: float, blocks: int = 12, **options: Any) -> Comparison:
    """One comparison of a against b, whose within-block log ratio is known exactly."""
    b = np.exp(np.linspace(0.0, 0.3, blocks))
    return judge([block_table({"a": b * np.exp(log_ratio + spread * STEPS[:blocks]), "b": b})], **options)[0]


def test_a_clear_difference_in_time_is_faster_or_slower() -> None:
    assert pair(-0.1, 0.02).verdict is Verdict.FASTER
    assert pair(0.1, 0.02).verdict is Verdict.SLOWER


def test_for_a_throughput_more_is_faster() -> None:
    b = np.exp(np.linspace(0.0, 0.3, 12))
    table = block_table({"a": b * np.exp(0.1 + 0.02 * STEPS), "b": b}, metric=THROUGHPUT)
    assert judge([table])[0].verdict is Verdict.FASTER
    table = block_table({"a": b * np.exp(-0.1 + 0.02 * STEPS), "b": b}, metric=THROUGHPUT)
    assert judge([table])[0].verdict is Verdict.SLOWER


def test_no_difference_within_little_noise_is_equivalent_and_within_much_is_inconclusive() -> None:
    same, unknown = pair(0.0, 0.01), pair(0.0, 0.2)
    assert (same.verdict, same.within_margin) == (Verdict.EQUIVALENT, True)
    assert (unknown.verdict, unknown.within_margin) == (Verdict.INCONCLUSIVE, False)


def test_a_small_difference_that_is_shown_is_told_as_a_difference_within_the_margin() -> None:
    small = pair(0.008, 0.004)
    assert (small.verdict, small.within_margin) == (Verdict.SLOWER, True)
    large = pair(0.05, 0.004)
    assert (large.verdict, large.within_margin) == (Verdict.SLOWER, False)


def test_a_wider_margin_admits_more() -> None:
    assert pair(0.0, 0.1, margin=0.02).verdict is Verdict.INCONCLUSIVE
    assert pair(0.0, 0.1, margin=0.1).verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize("blocks", [2, 3, 4, 5])
def test_fewer_than_six_blocks_are_inconclusive_however_clear_they_look(blocks: int) -> None:
    found = pair(1.0, 0.001, blocks=blocks)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert not found.within_margin
    assert found.warnings == (TooFewBlocks(blocks, 6, 0.05),)
    assert (found.interval.low, found.interval.high) == (0.0, np.inf)
    assert found.detectable_effect == np.inf
    assert found.ratio == pytest.approx(np.e, rel=1e-3)


@pytest.mark.parametrize(("spread", "factor"), [(0.3, None), (1.0, np.exp(1.7))])
def test_blocks_whose_ratios_are_far_apart_are_said_so(spread: float, factor: float | None) -> None:
    found = [warning.factor for warning in pair(1.0, spread).warnings if isinstance(warning, ScatteredBlocks)]
    assert found == ([] if factor is None else [pytest.approx(factor)])


def test_five_blocks_that_would_pass_two_one_sided_tests_are_still_inconclusive() -> None:
    assert pair(0.0, 0.0001, blocks=5).verdict is Verdict.INCONCLUSIVE


def test_six_blocks_can_decide() -> None:
    found = pair(1.0, 0.001, blocks=6)
    assert found.verdict is Verdict.SLOWER
    assert found.warnings == ()
    assert np.isfinite(found.detectable_effect)


def test_six_blocks_decide_every_pair_of_four_that_are_clearly_apart() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, (6, 4))
    found = judge([block_table({name: np.exp(noise[:, i] + i) for i, name in enumerate("abcd")})])
    assert {comparison.verdict for comparison in found} == {Verdict.FASTER}
    assert {comparison.p for comparison in found} == {2 / 64}
    assert [comparison.warnings for comparison in found] == [()] * 6


def test_blocks_too_few_for_the_number_of_works_are_said_so() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, (7, 3))
    figures = {name: np.exp(noise[:, i] + i) for i, name in enumerate("abc")}
    three = [block_table({name: own[:6] for name, own in figures.items()}, workload=f"w{i}") for i in range(3)]
    found = judge(three)
    assert {comparison.verdict for comparison in found} == {Verdict.INCONCLUSIVE}
    assert found[0].warnings[0] == TooFewBlocks(6, 7, 0.05, 9)
    found = judge([block_table(figures, workload=f"w{i}") for i in range(3)])
    assert {comparison.verdict for comparison in found} == {Verdict.FASTER}


def test_blocks_too_few_for_the_pairs_of_many_contestants_are_said_so() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, (10, 6))
    figures = {name: np.exp(noise[:, i] + i) for i, name in enumerate("abcdef")}
    found = judge([block_table({name: own[:9] for name, own in figures.items()})])
    assert {comparison.verdict for comparison in found} == {Verdict.INCONCLUSIVE}
    assert found[0].warnings[0] == TooFewBlocks(9, 10, 0.05, 15)
    assert {comparison.verdict for comparison in judge([block_table(figures)])} == {Verdict.FASTER}


def test_every_figure_of_a_worked_comparison() -> None:
    found = pair(0.05, 0.02)
    d = 0.05 + 0.02 * STEPS
    walsh = np.sort([(d[i] + d[j]) / 2 for i in range(12) for j in range(i, 12)])
    assert found.ratio == pytest.approx(np.exp(np.median(walsh)))
    # The critical value for 12 blocks is 13 at 5 % and 17 at 10 %, so as many are cut from each end.
    assert (found.interval.low, found.interval.high) == pytest.approx((np.exp(walsh[13]), np.exp(walsh[-14])))
    low, high = np.exp(walsh[17]), np.exp(walsh[-18])
    assert (found.equivalence_interval.low, found.equivalence_interval.high) == pytest.approx((low, high))
    ordered = np.sort(d)
    assert (found.sign_interval.low, found.sign_interval.high) == pytest.approx(
        (np.exp(ordered[2]), np.exp(ordered[-3]))
    )
    assert found.p == found.p_adjusted == 2 / 4096
    assert found.p_equivalent == found.p_equivalent_adjusted == 1.0
    assert (found.interval.level, found.equivalence_interval.level, found.sign_interval.level) == (
        0.05,
        0.1,
        0.05,
    )
    assert (found.level, found.decided_after_blocks) == (0.05, 12)
    assert (found.a, found.b, found.blocks, found.margin, found.workload) == ("a", "b", 12, 0.02, "")
    assert (found.metric, found.evidence, found.warnings) == (LATENCY, "between processes", ())


def test_every_table_has_an_equal_part_of_alpha() -> None:
    rng = np.random.default_rng(5)
    tables = [
        block_table({name: np.exp(rng.normal(0, 0.02, 20)) for name in "abc"}, workload=f"w{i}") for i in range(2)
    ]
    together = judge(tables)
    assert [(c.workload, c.a, c.b) for c in together] == [
        (w, a, b) for w in ("w0", "w1") for a, b in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    assert together == judge(tables[:1], alpha=0.025) + judge(tables[1:], alpha=0.025)
    assert {c.level for c in together} == {0.025}


def test_a_pair_of_a_later_table_keeps_its_own_figures() -> None:
    b = np.exp(np.linspace(0.0, 0.3, 12))
    still = block_table({"a": b * np.exp(0.2 * STEPS), "b": b}, workload="still")
    clear = block_table({"a": b * np.exp(0.5 + 0.01 * STEPS), "b": b}, workload="clear")
    close = block_table({"a": b * np.exp(0.001 * STEPS), "b": b}, workload="close")
    found = judge([still, clear, close])
    assert [c.verdict for c in found] == [Verdict.INCONCLUSIVE, Verdict.SLOWER, Verdict.EQUIVALENT]
    assert found[1].p < found[0].p
    assert found[2].p_equivalent < found[0].p_equivalent
    assert found[1].p_adjusted == found[1].p
    assert found[2].p_equivalent_adjusted == found[2].p_equivalent
    assert {c.level for c in found} == {0.05 / 3}


def test_an_interval_that_ends_at_exactly_one_shows_nothing() -> None:
    # Five zeros give fifteen Walsh averages of zero, one more than the fourteen that twelve blocks cut away.
    d = np.array([0.0] * 5 + [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    above = judge([block_table({"a": np.exp(d), "b": np.ones(12)})])[0]
    below = judge([block_table({"b": np.ones(12), "a": np.exp(d)})])[0]
    assert (above.interval.low, below.interval.high) == (1.0, 1.0)
    assert above.verdict is below.verdict is Verdict.INCONCLUSIVE


def test_skewed_differences_are_doubted() -> None:
    # The quantiles of an exponential: the median is 0.69, the pseudomedian 0.84.
    d = -np.log(1 - (np.arange(400) + 0.5) / 400)
    found = judge([block_table({"a": np.exp(d), "b": np.ones(400)})])[0]
    assert found.ratio > found.sign_interval.high > 2
    assert SkewedDifferences(found.sign_interval.low, found.sign_interval.high) in found.warnings
    turned = judge([block_table({"b": np.ones(400), "a": np.exp(d)})])[0]
    assert any(isinstance(warning, SkewedDifferences) for warning in turned.warnings)


def test_figures_that_never_vary_are_doubted() -> None:
    found = judge([block_table({"a": [3.0] * 12, "b": [3.0] * 12})])[0]
    assert (found.verdict, found.warnings) == (Verdict.EQUIVALENT, (NoSpread(),))
    twice = {"a": [6.0 + i for i in range(12)], "b": [12.0 + 2 * i for i in range(12)]}
    assert judge([block_table(twice)])[0].warnings == (NoSpread(),)


def test_modes_of_either_contestant_are_a_doubt_on_the_ratio() -> None:
    slow = np.array([0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1]) * 0.9 + 0.01 * STEPS
    b = np.ones(12) * np.exp(0.01 * STEPS[::-1])
    found = judge([block_table({"a": np.exp(slow), "b": b, "c": b * 1.5})])
    assert [ModesUnderneath("a", 2) in c.warnings for c in found] == [True, True, False]
    found = judge([block_table({"b": b, "a": np.exp(slow)})])
    assert ModesUnderneath("a", 2) in found[0].warnings


def test_evidence_from_within_one_process_keeps_its_label() -> None:
    table = block_table({"a": np.exp(STEPS), "b": np.exp(STEPS[::-1])}, evidence="within one process")
    assert judge([table])[0].evidence == "within one process"


@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 1.0}, {"margin": 0.0}, {"margin": 1.0}])
def test_a_level_or_margin_without_meaning_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(BadOption, match="must be between 0 and 1"):
        pair(0.0, 0.01, 12, **options)


def test_no_table_is_no_verdict() -> None:
    with pytest.raises(BadInput, match="no table"):
        judge([])
    with pytest.raises(BadInput, match="no table"):
        decided([], design=Design(until_decided=True))


def test_judging_and_looking_for_a_steady_state_import_no_heavy_library() -> None:
    program = (
        "import sys, fairlap.verdict as v\n"
        "v.judge([v.block_table({'a': range(1, 13), 'b': range(2, 14)})])\n"
        "v.steady_state([*range(1, 31), *range(101, 131)])\n"
        "print([m for m in ('scipy', 'statsmodels', 'ruptures', 'arch', 'pandas') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


eighths = st.integers(-24, 24).map(lambda k: k / 64)
tables = st.integers(2, 4).flatmap(
    lambda k: st.lists(st.lists(eighths, min_size=k, max_size=k), min_size=2, max_size=14)
)


# Relabelling four contestants takes a few hundredths of a second on a busy machine.
slow = settings(max_examples=40)


def judged(rows: list[list[float]], names: str = "abcd", factor: float = 1.0):  # type: ignore[no-untyped-def]
    array = np.exp(np.array(rows)) * factor
    return judge([block_table({names[i]: array[:, i] for i in range(array.shape[1])})])


@slow
@given(tables)
def test_verdict_and_interval_never_disagree(rows: list[list[float]]) -> None:
    for found in judged(rows):
        if found.verdict is Verdict.FASTER:
            assert found.interval.high < 1
        elif found.verdict is Verdict.SLOWER:
            assert found.interval.low > 1
        else:
            assert found.interval.low <= 1 <= found.interval.high
        decided = found.verdict in (Verdict.FASTER, Verdict.SLOWER)
        assert decided == (found.p <= found.interval.level and len(rows) >= 6)
        inside = found.equivalence_interval.low > 1 / 1.02 and found.equivalence_interval.high < 1.02
        assert (found.verdict is Verdict.EQUIVALENT) == (inside and not decided and len(rows) >= 6)


@pytest.mark.slow
@slow
@given(tables, st.sampled_from([1e-9, 0.37, 1e6]))
def test_the_unit_of_time_does_not_matter(rows: list[list[float]], factor: float) -> None:
    for here, there in zip(judged(rows), judged(rows, factor=factor), strict=True):
        assert here.verdict is there.verdict
        assert here.p == there.p
        assert here.ratio == pytest.approx(there.ratio)
        assert here.interval.low == pytest.approx(there.interval.low)
        assert here.interval.high == pytest.approx(there.interval.high)
        assert here.detectable_effect == pytest.approx(there.detectable_effect)


@slow
@given(tables)
def test_who_is_named_first_does_not_matter(rows: list[list[float]]) -> None:
    turned = [row[::-1] for row in rows]
    width = len(rows[0])
    there = {(c.a, c.b): c for c in judged(turned, names="abcd"[:width][::-1])}
    for here in judged(rows):
        other = there[here.b, here.a].reversed()
        assert here.verdict is other.verdict
        assert (here.a, here.b, here.p, here.p_adjusted) == (other.a, other.b, other.p, other.p_adjusted)
        assert here.ratio == pytest.approx(other.ratio)
        assert here.interval.low == pytest.approx(other.interval.low)
        assert here.interval.high == pytest.approx(other.interval.high)
        assert here.sign_interval.low == pytest.approx(other.sign_interval.low)
        assert here.equivalence_interval.high == pytest.approx(other.equivalence_interval.high)
        assert here.detectable_effect == pytest.approx(other.detectable_effect)


@pytest.mark.slow
@slow
@given(tables, st.randoms())
def test_the_order_of_the_blocks_does_not_matter(rows: list[list[float]], random) -> None:  # type: ignore[no-untyped-def]
    shuffled = rows[:]
    random.shuffle(shuffled)
    for here, there in zip(judged(rows), judged(shuffled), strict=True):
        assert (here.verdict, here.p, here.p_adjusted) == (there.verdict, there.p, there.p_adjusted)
        assert here.ratio == pytest.approx(there.ratio)
        assert here.detectable_effect == pytest.approx(there.detectable_effect)
