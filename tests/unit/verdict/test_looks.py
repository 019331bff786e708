"""When a race until decided looks at its verdict, and what a look costs."""

import numpy as np
import pytest
from fairlap.verdict import THROUGHPUT, Comparison, Design, Look, Verdict, block_table, decided, judge, looks, standing
from fairlap.verdict.blocks import Floats
from hypothesis import given, settings
from hypothesis import strategies as st

RUNNING = Design(until_decided=True, ended_blind=False)
ENDED = Design(until_decided=True)
WINNER = Design(until_decided=True, only_winner=True, ended_blind=False)


def normal(blocks: int, levels: list[float], spread: float = 0.02, seed: int = 0) -> Floats:
    """Log figures whose pairs spread by so much within a block."""
    noise = np.random.default_rng(seed).normal(0, spread / np.sqrt(2), (blocks, len(levels)))
    figures: Floats = noise + np.array(levels)
    return figures


def looks_of(figures: Floats, design: Design = ENDED, alpha: float = 0.05) -> tuple[Look, ...]:
    return looks(figures, alpha=alpha, margin=0.02, design=design)


def table(figures: Floats, **options):  # type: ignore[no-untyped-def]
    return block_table({name: np.exp(figures[:, i]) for i, name in enumerate("abcde"[: figures.shape[1]])}, **options)


def verdicts(found: tuple[Comparison, ...]) -> list[Verdict]:
    return [each.verdict for each in found]


def test_a_fixed_design_looks_once_at_the_whole_level() -> None:
    for figures in (normal(3, [0, 0]), normal(40, [0, 1, 2])):
        assert looks_of(figures, Design()) == (Look(figures.shape[0], 0.05),)
        assert looks_of(figures, Design(only_winner=True)) == (Look(figures.shape[0], 0.05),)


def test_contestants_clearly_apart_are_looked_at_after_six_blocks() -> None:
    clear = normal(6, [0, 0.2, 0.4, 0.6], spread=0.03)
    [first] = looks_of(clear, RUNNING)
    assert first.blocks == 6
    assert first.level == pytest.approx(0.032)
    assert looks_of(clear[:5], RUNNING) == ()
    assert decided([table(clear)], design=RUNNING)
    assert not decided([table(clear[:5])], design=RUNNING)


def test_equal_contestants_amid_much_noise_are_not_looked_at_early() -> None:
    noisy = normal(15, [0, 0, 0, 0], spread=0.5)
    assert looks_of(noisy, RUNNING) == ()
    assert looks_of(noisy, ENDED) == (Look(15, 0.05),)
    assert not decided([table(noisy)], design=RUNNING)


def test_a_run_that_ends_blindly_spends_what_is_left_at_its_end() -> None:
    clear = normal(7, [0, 0.5])
    assert looks_of(clear[:6]) == (Look(6, 0.05),)
    first, last = looks_of(clear)
    assert (first.blocks, last.blocks) == (6, 7)
    assert [first.level, last.level] == pytest.approx([0.032, 0.018])


def test_each_further_early_look_gets_half_of_what_is_left() -> None:
    levels = [look.level for look in looks_of(normal(40, [0, 0.5]), RUNNING)]
    assert levels[:3] == pytest.approx([0.032, 0.009, 0.0045])


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.sampled_from([0.0, 0.03, 0.3]), st.integers(2, 4))
@settings(max_examples=60)
def test_all_looks_together_spend_alpha_and_never_more(seed: int, blocks: int, step: float, contestants: int) -> None:
    figures = normal(blocks, [step * i for i in range(contestants)], seed=seed)
    for alpha in (0.05, 0.01):
        running, ended = looks_of(figures, RUNNING, alpha), looks_of(figures, ENDED, alpha)
        assert sum(look.level for look in running) < alpha
        assert sum(look.level for look in ended) == pytest.approx(alpha)
        assert ended[-1].blocks == blocks
        assert [look for look in running if look.blocks < blocks] == list(ended[:-1])


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.02, 0.1]), st.integers(2, 5), st.booleans())
@settings(max_examples=60)
def test_swapping_contestants_inside_blocks_changes_no_look(seed: int, step: float, k: int, only_winner: bool) -> None:
    figures = normal(24, [step * i for i in range(k)], seed=seed)
    swapped = np.random.default_rng(seed).permuted(figures, axis=1)
    design = Design(until_decided=True, only_winner=only_winner)
    assert looks_of(figures, design) == looks_of(swapped, design)


@given(st.integers(0, 2**32 - 1), st.integers(6, 30))
@settings(max_examples=40)
def test_further_blocks_change_no_earlier_look(seed: int, blocks: int) -> None:
    figures = normal(40, [0, 0.02, 0.05], seed=seed)
    before = looks_of(figures[:blocks], RUNNING)
    assert looks_of(figures, RUNNING)[: len(before)] == before


def test_equal_contestants_amid_little_noise_are_decided_as_equivalent() -> None:
    figures = normal(12, [0, 0, 0], spread=0.005)
    [first] = looks_of(figures[: looks_of(figures, RUNNING)[0].blocks], RUNNING)
    found = judge([table(figures[: first.blocks])], design=RUNNING)
    assert verdicts(found) == [Verdict.EQUIVALENT] * 3
    assert {each.decided_after_blocks for each in found} == {first.blocks}
    assert decided([table(figures[: first.blocks])], design=RUNNING)


def test_what_was_decided_at_a_look_stays_decided_with_the_figures_of_that_look() -> None:
    early = np.column_stack([np.linspace(0.30, 0.31, 6), np.zeros(6)])
    late = np.column_stack([np.tile([0.6, -0.6], 5) + np.linspace(0, 0.01, 10), np.zeros(10)])
    [found] = judge([table(np.vstack([early, late]))], design=ENDED)
    assert (found.verdict, found.decided_after_blocks, found.blocks) == (Verdict.SLOWER, 6, 6)
    assert [found.interval.low, found.level] == pytest.approx([np.exp(0.30), 0.032])
    assert judge([table(np.vstack([early, late]))])[0].verdict is Verdict.INCONCLUSIVE


def test_what_was_decided_is_shown_with_all_blocks_where_they_agree() -> None:
    figures = normal(20, [0, 0.5])
    [found] = judge([table(figures)], design=ENDED)
    assert (found.verdict, found.decided_after_blocks, found.blocks) == (Verdict.FASTER, 6, 20)
    assert found.p_adjusted <= found.level == found.interval.level < 0.018
    assert found.interval.high < 1


def test_a_run_that_was_stopped_between_looks_claims_nothing_beyond_them() -> None:
    # Too noisy to be looked at, yet all of one sign: a fixed design would claim it.
    figures = np.column_stack([np.array([0.01, 0.5, 0.02, 1.5, 0.03, 0.9, 0.04]), np.zeros(7)])
    assert looks_of(figures, RUNNING) == ()
    [fixed] = judge([table(figures)])
    [found] = judge([table(figures)], design=RUNNING)
    assert (fixed.verdict, found.verdict) == (Verdict.SLOWER, Verdict.INCONCLUSIVE)
    assert found.decided_after_blocks is None
    assert found.interval.low <= 1 <= found.interval.high
    assert found.interval.level < found.p


def test_only_the_winner_is_compared_with_each_other() -> None:
    figures = normal(12, [0.5, 0.0, 0.3, 0.3])
    found = judge([table(figures)], design=WINNER)
    assert [(each.a, each.b) for each in found] == [("a", "b"), ("b", "c"), ("b", "d")]
    assert verdicts(found) == [Verdict.SLOWER, Verdict.FASTER, Verdict.FASTER]
    assert decided([table(figures[:6])], design=WINNER)
    assert not decided([table(figures[:6])], design=RUNNING)
    result = standing(table(figures), found)
    assert (result.winner, result.unbeaten) == ("b", ("b",))
    assert {place.contestant: place.label for place in result.places} == {"b": "1", "a": "2=", "c": "2=", "d": "2="}


def test_the_pairs_of_a_winner_have_the_figures_they_have_among_all_pairs() -> None:
    figures = normal(12, [0.05, 0.0, 0.02])
    among_all = {(each.a, each.b): each for each in judge([table(figures)])}
    for each in judge([table(figures)], design=Design(only_winner=True)):
        assert each == among_all[each.a, each.b]


def test_for_throughput_the_winner_has_the_most() -> None:
    found = judge([table(normal(8, [0.5, 0.0, 0.3]), metric=THROUGHPUT)], design=WINNER)
    assert [(each.a, each.b, each.verdict) for each in found] == [
        ("a", "b", Verdict.FASTER),
        ("a", "c", Verdict.FASTER),
    ]


def test_all_works_have_to_be_decided() -> None:
    clear = table(normal(8, [0, 0.5]), workload="clear")
    open_ = table(normal(8, [0, 0], spread=0.3), workload="open")
    assert decided([clear, clear], design=RUNNING)
    assert not decided([clear, open_], design=RUNNING)
    # Half of alpha each: the first look of a table is at 1.6 %, which takes seven blocks.
    assert not decided([clear.first(6), clear.first(6)], design=RUNNING)
    assert decided([clear.first(6)], design=RUNNING)


def test_after_twenty_blocks_the_first_look_comes_in_any_case() -> None:
    noisy = normal(21, [0, 0, 0, 0], spread=0.5)
    assert looks_of(noisy[:19], RUNNING) == ()
    [first] = looks_of(noisy, RUNNING)
    assert (first.blocks, looks_of(noisy[:20], RUNNING)) == (20, (first,))
