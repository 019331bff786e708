"""Cheap checks of answers find what expensive ones found, and take a share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import fairlap
import numpy as np
import pytest
from fairlap.engine.calls_in_turns import Arguments
from fairlap.scenarios.callables.answers.arrays import Leaf
from fairlap.scenarios.callables.answers.check import Answers
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import Draw
from fairlap.scenarios.callables.answers.right_answers.in_chunks import are_same_bytes
from fairlap.scenarios.callables.answers.right_answers.truth import truth_of
from fairlap.scenarios.callables.answers.spending import Spending, Window
from fairlap.scenarios.callables.answers.wrong import why_wrong
from trust.callable_answers.wrong import add, draw

MANY = 3 * 2**14 + 5  # numbers, of which the last piece is not a whole one
CLOCKS = "fairlap.scenarios.callables.answers.spending.time"
SLOW_S = 0.01  # a reference that takes so long is evaluated seldom


def truth_of_many(reference: Callable[..., Any]) -> Any:
    arguments = Arguments((np.random.default_rng(3).standard_normal(MANY).astype(np.float32),))
    return truth_of(lambda given: reference(*given.args), "reference", arguments).leaves["the answer"]


@pytest.mark.parametrize("place", [0, 2**14 - 1, 2**14, MANY - 1])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e-3])
def test_one_wrong_number_is_found_wherever_it_is(place: int, wrong: float) -> None:
    true = truth_of_many(np.exp)
    right = np.array(true.own.values)
    assert why_wrong("it", true, Leaf(right, "float32")) == ""
    right[place] += np.float32(wrong)
    assert f"[{place}]" in why_wrong("it", true, Leaf(right, "float32"))


@pytest.mark.parametrize("place", [0, 2**14, MANY - 1])
def test_one_changed_byte_is_seen(place: int) -> None:
    for kind in (np.float32, np.float64, np.int8):
        one = np.ones(MANY, kind)
        other = one.copy()
        assert are_same_bytes(one, other)
        other[place] = 0
        assert not are_same_bytes(one, other)


def test_a_reference_that_answers_in_one_buffer_has_the_truth_of_its_first_call() -> None:
    kept: dict[Any, Any] = {}

    def into_one_buffer(x: Any) -> Any:
        out = kept.setdefault(x.dtype, np.empty_like(x))
        return np.square(x, out=out)

    shared, fresh = truth_of_many(into_one_buffer), truth_of_many(np.square)
    assert np.array_equal(shared.values, fresh.values)
    assert np.array_equal(shared.allowed, fresh.allowed)


def test_a_reference_that_changes_its_argument_has_the_truth_of_what_it_was_given() -> None:
    def negated(x: Any) -> None:
        x *= -1

    values = np.random.default_rng(3).standard_normal(MANY).astype(np.float32)
    truth = truth_of(lambda given: negated(*given.args), "reference", Arguments((values,)))
    [name] = truth.changed
    assert np.array_equal(truth.leaves[name].values, -values.astype(np.float64))


def slowly_added(a: Any, b: Any) -> Any:
    time.sleep(SLOW_S)
    return a + b


def test_a_slow_reference_checks_a_timed_call_of_each_and_is_in_no_timed_call() -> None:
    found = fairlap.compare(
        {"a": add, "b": lambda a, b: b + a}, reference=slowly_added, inputs=draw, blocks=6, seconds=0.002, seed=5
    )
    assert found.answers.timed_calls >= 1
    assert found.answers.checked_calls >= 3  # before, among the timed ones, and after
    assert all(row.median_ns < 1e9 * SLOW_S / 2 for row in found.rows)


def test_an_old_answer_is_found_although_the_reference_is_slow() -> None:
    kept: list[Any] = []

    def first_answer(a: Any, b: Any) -> Any:
        kept.append(a + b)
        return kept[0].copy()

    callables = {"a": add, "stale": first_answer}
    found = fairlap.compare(callables, reference=slowly_added, inputs=draw, blocks=6, seconds=0.002, seed=5)
    assert found.answers.wrong["stale"].code == "E_STALE_ANSWER"


def answers_of(call: Callable[..., Any], **options: Any) -> Answers:
    return Answers([Checked("it", call, None)], Draw.of(draw, 7), Checked("reference", add, None), **options)


def test_a_callable_that_is_wrong_in_the_end_is_not_ranked() -> None:
    is_over = False

    def right_until_the_end(a: Any, b: Any) -> Any:
        return a if is_over else a + b

    answers = answers_of(right_until_the_end)
    answers.check_first()
    assert not answers.wrong
    is_over = True
    answers.check_last()
    assert answers.wrong["it"].code == "E_OUTPUT"


def test_further_calls_are_checked_when_there_has_been_time() -> None:
    answers = answers_of(add)
    answers.check_first()
    before = answers.result().checked_calls
    answers.check_last()
    assert answers.result().checked_calls == before + 1
    answers.took(60.0)
    answers.check_last()
    assert answers.result().checked_calls > before + 100


def test_optional_checks_take_a_share_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(f"{CLOCKS}.perf_counter", lambda: now_s)
    checks = Spending()
    with checks.counted():
        now_s += 1.0
    checks.whole_s += 10.0
    assert checks.left_s < 0
    assert not checks.affords(0.0)
    checks.whole_s += 10.0
    assert 0 < checks.left_s <= 0.1 * 20.0 - 1.0


def test_a_busy_machine_does_not_shorten_what_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s, processor_s = 0.0, 0.0
    monkeypatch.setattr(f"{CLOCKS}.perf_counter", lambda: clock_s)
    monkeypatch.setattr(f"{CLOCKS}.thread_time", lambda: processor_s)
    window = Window(1.0)
    clock_s, processor_s = 2.0, 0.5
    assert not window.is_over
    processor_s = 1.5
    assert window.is_over
    clock_s, processor_s = 60.0, 0.0  # a callable that sleeps uses no time of the processor
    assert window.is_over
