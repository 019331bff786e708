"""The Pareto front by what is shown agrees with its definition, and claims nothing that is not shown."""

from __future__ import annotations

from itertools import product

import pytest
from fairlap.request.work import Objective
from fairlap.results.choice.front import Compared, Outcome, dominates, places
from fairlap.results.choice.recommendation import recommended
from hypothesis import given
from hypothesis import strategies as st

POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=7)


def lower(values: dict[str, int], *, unknown: frozenset[frozenset[str]] = frozenset()) -> Compared:
    def outcome(a: str, b: str) -> Outcome:
        if frozenset((a, b)) in unknown:
            return "inconclusive"
        return "equivalent" if values[a] == values[b] else "better" if values[a] < values[b] else "worse"

    return outcome


@given(POINTS)
def test_where_all_is_known_the_front_is_that_of_the_definition(points: list[tuple[int, int]]) -> None:
    by_name = {f"{place}": point for place, point in enumerate(points)}
    figures = [lower({name: point[axis] for name, point in by_name.items()}) for axis in (0, 1)]
    for name, found in places(list(by_name), figures).items():
        x, y = by_name[name]
        beaten_by = {other for other, (u, v) in by_name.items() if u <= x and v <= y and (u, v) != (x, y)}
        assert set(found.dominated_by) == beaten_by
        assert found.position == ("dominated" if beaten_by else "on the front")


@given(POINTS, st.data())
def test_what_is_claimed_of_a_part_of_the_comparisons_holds_when_all_are_known(
    points: list[tuple[int, int]], data: st.DataObject
) -> None:
    by_name = {f"{place}": point for place, point in enumerate(points)}
    pairs = [frozenset(pair) for pair in product(by_name, repeat=2) if len(set(pair)) == 2]
    known, partly = [], []
    for axis in (0, 1):
        values = {name: point[axis] for name, point in by_name.items()}
        known.append(lower(values))
        partly.append(lower(values, unknown=frozenset(data.draw(st.lists(st.sampled_from(pairs), max_size=9)))))
    truth = places(list(by_name), known)
    for name, found in places(list(by_name), partly).items():
        assert set(found.dominated_by) <= set(truth[name].dominated_by)
        if found.position == "on the front":
            assert truth[name].position == "on the front"
        if found.position == "may be on it":
            assert set(truth[name].dominated_by) <= set(found.may_be_dominated_by)


def test_one_that_is_better_and_inconclusive_does_not_dominate() -> None:
    score, time = lower({"a": 1, "b": 2}), lower({"a": 1, "b": 1}, unknown=frozenset([frozenset("ab")]))
    assert not dominates("a", "b", (score, time))


@pytest.mark.parametrize(
    ("scores", "times", "minimise", "names", "reason"),
    [
        ("12", "12", None, "a", "recommended"),  # lower is better: a is better in both
        ("12", "21", None, "ab", "trade_off"),
        ("11", "11", None, "ab", "not_separated"),
        ("12", "21", "time", "b", "recommended"),
        ("12", "11", "time", "a", "recommended"),  # equivalent in time, better in score
        ("11", "11", "time", "ab", "not_separated"),
    ],
)
def test_recommended_is_what_no_other_beats(
    scores: str, times: str, minimise: Objective | None, names: str, reason: str
) -> None:
    score, time = (lower(dict(zip("ab", map(int, values), strict=True))) for values in (scores, times))
    found = recommended({"a": "yes", "b": "yes"}, score, time, minimise)
    assert ("".join(found.names), found.reason) == (names, reason)


def test_only_what_is_shown_to_qualify_is_recommended() -> None:
    score, time = lower({"a": 1, "b": 2, "c": 3}), lower({"a": 1, "b": 2, "c": 3})
    found = recommended({"a": "no", "b": "unknown", "c": "yes"}, score, time, "time")
    assert (found.names, found.reason) == (("c",), "recommended")
    assert recommended({"a": "no", "b": "unknown"}, score, time, "time").reason == "requirements_unknown"
    assert recommended({"a": "no", "b": "no"}, score, time, "time").reason == "none_qualifies"
