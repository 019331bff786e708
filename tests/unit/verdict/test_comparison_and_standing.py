"""Telling a comparison from the other side, and ranking."""

import numpy as np
import pytest
from fairlap.verdict import THROUGHPUT, BadInput, Verdict, block_table, judge, standing
from fairlap.verdict.comparison import Interval
from fairlap.verdict.warnings import CircularOrder

RNG = np.random.default_rng(11)
NOISE = RNG.normal(0, 0.002, (12, 5))


def ranked(levels: list[float], noise: float = 1.0, **options):  # type: ignore[no-untyped-def]
    names = "abcde"[: len(levels)]
    table = block_table({n: np.exp(levels[i] + noise * NOISE[:, i]) for i, n in enumerate(names)}, **options)
    return standing(table, judge([table]))


def test_an_interval_turned_round() -> None:
    turned = Interval(0.5, 4.0, 0.05).inverse()
    assert (turned.low, turned.high, turned.level) == (0.25, 2.0, 0.05)
    unbounded = Interval(0.0, np.inf, 0.05).inverse()
    assert (unbounded.low, unbounded.high) == (0.0, np.inf)


def test_a_comparison_reversed_twice_is_itself() -> None:
    b = np.exp(NOISE[:, 0])
    found = judge([block_table({"a": 2 * b * np.exp(NOISE[:, 1]), "b": b})])[0]
    turned = found.reversed()
    assert (turned.a, turned.b, turned.verdict) == ("b", "a", Verdict.FASTER)
    assert turned.ratio == pytest.approx(0.5, rel=0.01)
    assert turned.interval.high < 1
    assert turned.reversed().ratio == pytest.approx(found.ratio)
    assert turned.reversed().verdict is Verdict.SLOWER
    assert found.p == turned.p


def test_the_one_who_beats_all_is_the_winner() -> None:
    result = ranked([0.3, 0.1, 0.2])
    assert result.winner == "b"
    assert result.unbeaten == ("b",)
    assert [(place.contestant, place.label) for place in result.places] == [
        ("b", "1"),
        ("c", "2"),
        ("a", "3"),
    ]
    assert result.warnings == ()


def test_ties_are_printed_as_ties() -> None:
    result = ranked([0.0, 0.2, 0.2, 0.5])
    assert [place.label for place in result.places] == ["1", "2=", "2=", "4"]
    assert {place.contestant for place in result.places[1:3]} == {"b", "c"}
    assert [(place.best, place.worst) for place in result.places] == [(1, 1), (2, 3), (2, 3), (4, 4)]
    assert [place.unbeaten for place in result.places] == [True, False, False, False]


def test_without_a_winner_the_unbeaten_are_named() -> None:
    result = ranked([0.0, 0.0, 0.5])
    assert result.winner is None
    assert set(result.unbeaten) == {"a", "b"}
    assert [place.label for place in result.places] == ["1=", "1=", "3"]


def test_one_who_is_unbeaten_but_has_not_beaten_all_is_no_winner() -> None:
    # c is too noisy to differ from any other, b is slower than a: a and c are unbeaten, and neither wins.
    noisy = np.exp(np.where(np.arange(12) % 2, 2.0, -2.0))
    table = block_table({"a": np.exp(NOISE[:, 0]), "b": np.exp(0.1 + NOISE[:, 1]), "c": noisy * np.exp(NOISE[:, 2])})
    result = standing(table, judge([table]))
    assert result.winner is None
    assert set(result.unbeaten) == {"a", "c"}
    assert {place.contestant: place.label for place in result.places} == {"a": "1=", "b": "2=", "c": "1="}


def test_between_those_not_shown_apart_the_better_median_is_listed_first() -> None:
    result = ranked([0.0003, 0.0, 0.0001], noise=0.9)
    medians = {n: np.median([0.0003, 0.0, 0.0001][i] + 0.9 * NOISE[:, i]) for i, n in enumerate("abc")}
    assert {place.label for place in result.places} == {"1="}
    assert [place.contestant for place in result.places] == sorted("abc", key=lambda n: medians[n])
    by_throughput = ranked([0.0003, 0.0, 0.0001], noise=0.9, metric=THROUGHPUT)
    assert [p.contestant for p in by_throughput.places] == sorted("abc", key=lambda n: -medians[n])


def test_for_throughput_the_highest_wins() -> None:
    assert ranked([0.3, 0.1, 0.2], metric=THROUGHPUT).winner == "a"


def test_the_detectable_effect_of_a_table_is_that_of_its_noisiest_pair() -> None:
    table = block_table({"a": np.exp(NOISE[:, 0]), "b": np.exp(NOISE[:, 1]), "c": np.exp(9 * NOISE[:, 2])})
    comparisons = judge([table])
    result = standing(table, comparisons)
    assert result.detectable_effect == max(c.detectable_effect for c in comparisons)
    assert result.detectable_effect > comparisons[0].detectable_effect


def test_a_circle_leaves_nobody_unbeaten_and_says_so() -> None:
    table = block_table({"a": np.exp(NOISE[:, 0]), "b": np.exp(1 + NOISE[:, 1]), "c": np.exp(2 + NOISE[:, 2])})
    ab, ac, bc = judge([table])
    circle = [ab, ac.reversed().__class__(**{**ac.__dict__, "verdict": Verdict.SLOWER}), bc]
    result = standing(table, circle)
    assert result.unbeaten == ()
    assert result.winner is None
    assert result.warnings == (CircularOrder(),)


def test_only_the_comparisons_of_the_same_table_count() -> None:
    first = block_table({"a": np.exp(NOISE[:, 0]), "b": np.exp(1 + NOISE[:, 1])}, workload="one")
    second = block_table({"a": np.exp(1 + NOISE[:, 0]), "b": np.exp(NOISE[:, 1])}, workload="two")
    third = block_table({"a": np.exp(1 + NOISE[:, 0]), "b": np.exp(NOISE[:, 1])}, workload="one", metric=THROUGHPUT)
    comparisons = judge([first, second, third])
    assert standing(first, comparisons).winner == "a"
    assert standing(second, comparisons).winner == "b"
    assert standing(third, comparisons).winner == "a"
    with pytest.raises(BadInput, match="two: 0 comparisons do not cover 2 contestants"):
        standing(second, comparisons[:1])
