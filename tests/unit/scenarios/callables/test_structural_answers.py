"""Structural inputs show what drawn ones of one size do not, and inputs of one size are noted."""

from __future__ import annotations

import time
from typing import Any

import fairlap
import numpy as np
import pytest
from fairlap.scenarios.callables.answers.check import Answers
from fairlap.scenarios.callables.answers.checked import Checked
from fairlap.scenarios.callables.answers.drawn import Draw
from fairlap.scenarios.callables.answers.structural import LAYOUTS, VALUES, check_structural
from trust.callable_answers.wrong import WRONG, Wrong, add, draw

QUICK: dict[str, Any] = {"blocks": 6, "seconds": 0.002, "seed": 5}


@pytest.mark.parametrize("wrong", [each for each in WRONG if each.structural], ids=lambda wrong: wrong.name)
def test_usual_inputs_do_not_show_what_structural_ones_do(wrong: Wrong) -> None:
    answers = Answers(
        [Checked("wrong", wrong.make(), None)], Draw.of(wrong.draw, 7), Checked("reference", wrong.reference, None)
    )
    answers.check_first()
    assert not answers.wrong


def test_structural_cases_are_shrunk_to_the_smallest() -> None:
    def wrong_from_ten(a: Any, b: Any) -> Any:
        return a + b if len(a) < 10 or len(a) > 200 else a

    draw_of_any = Draw.of(draw, 3)
    answers = Answers([Checked("wrong", wrong_from_ten, None)], draw_of_any, Checked("reference", add, None))
    answers.check_first()
    assert not answers.wrong
    check_structural(answers, draw_of_any)
    assert "n=10" in answers.wrong["wrong"].text


def test_structural_cases_outside_of_what_the_reference_takes_are_left_out() -> None:
    def needs_two(a: Any, b: Any) -> Any:
        if len(a) < 2:
            raise ValueError("too short")
        return a + b

    found = fairlap.compare({"a": add, "b": needs_two}, reference=needs_two, inputs=[draw, "structural"], **QUICK)
    assert not found.answers.wrong
    assert found.answers.structural_cases > 20


@pytest.mark.parametrize("kind", ["float16", "float32", "int8", "complex64", "bool"])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (0,)])
def test_every_family_takes_every_array(kind: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    values = np.asarray(rng.integers(0, 9, shape)).astype(kind)
    for of_values in VALUES.values():
        found = of_values(values, rng)
        assert (found.shape, found.dtype) == (values.shape, values.dtype)
    for layout in LAYOUTS.values():
        assert np.array_equal(layout(values), values)


def test_that_no_size_could_be_varied_is_said() -> None:
    def forgets_the_last_of_an_odd_number(x: np.ndarray) -> np.ndarray:
        return np.where(np.arange(x.size) < x.size - x.size % 2, x, 0.0)

    def always_64(rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(64)

    contestants: dict[str, Any] = {"right": np.array, "wrong": forgets_the_last_of_an_odd_number}
    found = fairlap.compare(contestants, reference=np.array, inputs=[always_64, "structural"], **QUICK)
    assert not found.answers.wrong
    assert [[notice.code for notice in row.warnings].count("W_ONE_SIZE") for row in found.rows] == [1, 1]

    def any_size(rng: np.random.Generator, n: int = 64) -> np.ndarray:
        return rng.standard_normal(n)

    found = fairlap.compare(contestants, reference=np.array, inputs=[any_size, "structural"], **QUICK)
    assert set(found.answers.wrong) == {"wrong"}
    assert not any(notice.code == "W_ONE_SIZE" for row in found.rows for notice in row.warnings)


@pytest.mark.parametrize(
    ("draw", "notes"),
    [
        (lambda rng: rng.standard_normal(64), 1),
        (lambda rng, n=64: rng.standard_normal(n), 1),  # which is the only n that was tried
        (lambda rng: rng.standard_normal(rng.integers(1, 100)), 0),
        (lambda rng: float(rng.standard_normal()), 0),
    ],
)
def test_inputs_of_one_size_are_noted_without_structural_ones_too(draw: Any, notes: int) -> None:
    found = fairlap.compare({"a": np.negative, "b": lambda x: -x}, reference=np.negative, inputs=draw, **QUICK)
    assert [[notice.code for notice in row.warnings].count("W_ONE_SIZE") for row in found.rows] == [notes, notes]
    assert str(found).count("[W_ONE_SIZE]") == notes
    assert str(found).count("other sizes were not tried") == notes


def test_sizes_are_compared_where_only_one_call_was_checked_in_time() -> None:
    def slow(x: Any) -> Any:
        time.sleep(0.02)
        return -x

    found = fairlap.compare(
        {"a": np.negative, "b": lambda x: -x},
        reference=slow,
        inputs=lambda rng: rng.standard_normal(rng.integers(1, 100)),
        **QUICK,
    )
    assert not any(notice.code == "W_ONE_SIZE" for row in found.rows for notice in row.warnings)
