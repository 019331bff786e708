"""Equal callables get equally many calls in a sample, however other programs disturb the warm-up of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import fairlap
import pytest
from fairlap.engine.calls_in_turns import CallsInTurns, Rounds
from fairlap.engine.measure_call import timed
from fairlap.engine.measurement import Measurement
from fairlap.scenarios.callables import turns
from fairlap.scenarios.callables.sample_sizes import even_calls

GAMMA = ("libm.so.6:tgamma", "f64:-20.3")  # so long that reading the clock adds little to a single call


@pytest.mark.parametrize(
    ("calls", "medians_ns", "even"),
    [
        ((128, 128), (9.0, 9.2), [128, 128]),
        ((128, 64), (9.0, 11.0), [128, 128]),
        ((128, 1), (9.0, 5e6), [128, 1]),
        ((256, 16, 8), (4.0, 100.0, 120.0), [256, 16, 16]),
        ((4, 128), (float("nan"), 9.0), [4, 128]),
    ],
    ids=["alike", "at a power of two", "a long one", "three", "no sample"],
)
def test_callables_that_take_about_as_long_get_as_many_calls(
    calls: Sequence[int], medians_ns: Sequence[float], even: list[int]
) -> None:
    assert even_calls(calls, medians_ns) == even


@pytest.fixture
def calls_in_rounds(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Of each block; the warm-up of the callable ``interrupted`` finds that one call makes a sample."""
    rounds, found = CallsInTurns.rounds, list[tuple[int, ...]]()

    def interrupted(fn: object, *, name: str, calls_per_sample: Any, **asked: Any) -> Measurement:
        calls = 1 if name == "interrupted" and calls_per_sample == "auto" else calls_per_sample
        return timed(fn, name=name, calls_per_sample=calls, **asked)

    def recorded(self: CallsInTurns, calls: Any, count: int, order: Any, calls_per_sample: Any, *more: Any) -> Rounds:
        found.append(tuple(calls_per_sample))
        return rounds(self, calls, count, order, calls_per_sample, *more)

    monkeypatch.setattr(turns, "timed", interrupted)
    monkeypatch.setattr(CallsInTurns, "rounds", recorded)
    return found


def test_an_interrupted_warm_up_makes_no_difference(calls_in_rounds: list[tuple[int, ...]]) -> None:
    equal = {name: fairlap.c_function(*GAMMA) for name in ("interrupted", "left alone")}
    fairlap.compare(equal, blocks=2, seconds=0.005, any_answers=True, wait=False)
    assert len(calls_in_rounds) == 2
    for first, second in calls_in_rounds:
        assert first == second > 1


def test_a_number_of_calls_that_is_given_stays(calls_in_rounds: list[tuple[int, ...]]) -> None:
    equal = {name: fairlap.c_function(*GAMMA) for name in ("one", "other")}
    fairlap.compare(equal, blocks=2, seconds=0.005, any_answers=True, wait=False, calls_per_sample=3)
    assert calls_in_rounds == [(3, 3)] * 2
