"""Digits are counted as defined, bounded as theory says, and lost by the algorithms that are known to lose them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from fairlap.models.checks.kept_digits import any_error, digits, other_kinds, smallest_error
from fairlap.models.draw import draw_inputs, draw_weights
from fairlap.models.made_arrays import made
from fairlap.models.operations.kinds import operation_named
from fairlap.models.operations.operation import Operation
from fairlap.models.reference import reference_answers
from fairlap.models.registry import find, reference_at
from fairlap.models.spec import Made
from fairlap.models.workload import Workload
from hypothesis import given
from hypothesis import strategies as st

Array = npt.NDArray[Any]
ROUNDOFF = 2.0**-24


@given(st.floats(0, 2))
def test_digits_fall_with_the_error_and_stay_within_the_precision(relative: float) -> None:
    found = digits(relative, ROUNDOFF)
    assert 0 <= found <= -math.log10(ROUNDOFF)
    assert digits(relative / 10, ROUNDOFF) >= found
    if ROUNDOFF < relative < 1:
        assert 10**-found == pytest.approx(relative)


def test_what_is_no_number_keeps_no_digits() -> None:
    assert digits(math.nan, ROUNDOFF) == digits(math.inf, ROUNDOFF) == digits(1.0, ROUNDOFF) == 0


@given(st.lists(st.sampled_from((0.0, 1.0, -2.5, math.inf, -math.inf, math.nan)), min_size=1, max_size=9), st.data())
def test_an_answer_equal_to_the_reference_has_no_error_and_one_of_another_kind_an_infinite_one(
    values: list[float], data: st.DataObject
) -> None:
    expected = np.array(values)
    same = any_error("x", expected.astype(np.float32), expected, by_element=False)
    assert (same.relative_error, same.right, other_kinds(expected, expected)) == (0, True, 0)
    place = data.draw(st.integers(0, len(values) - 1))
    other = expected.copy()
    other[place] = 1.0 if not math.isfinite(values[place]) else data.draw(st.sampled_from((math.nan, math.inf)))
    assert other_kinds(other, expected) == 1
    wrong = any_error("x", other, expected, by_element=False)
    assert (wrong.relative_error, wrong.right) == (math.inf, True)


def test_infinities_of_the_other_sign_are_another_kind() -> None:
    assert other_kinds(np.array((math.inf,)), np.array((-math.inf,))) == 1


def test_an_answer_of_another_shape_is_wrong() -> None:
    assert not any_error("x", np.zeros((2, 1)), np.zeros(2), by_element=False).right


def test_an_element_counts_where_elements_count() -> None:
    expected, got = np.array((1.0, 1e-30)), np.array((1.0, 0.0))
    assert any_error("x", got, expected, by_element=True).relative_error == 1
    assert any_error("x", got, expected, by_element=False).relative_error < 1e-29


@given(st.integers(2, 600), st.integers(0, 4), st.integers(0, 9))
def test_the_error_of_a_plain_sum_is_within_the_bound_of_higham(numbers: int, amount: int, seed: int) -> None:
    """By (4.4) of Accuracy and Stability of Numerical Algorithms, it is at most gamma of n - 1 times the condition."""
    row = made(Made("cancelling", amount), (1, numbers), np.random.default_rng(seed))
    plain = np.float32(0)
    for each in row[0]:
        plain = np.float32(plain + each)
    exact = np.array([math.fsum(row[0].astype(np.float64))])
    condition = float(np.abs(row.astype(np.float64)).sum()) / abs(exact[0])
    gamma = (numbers - 1) * ROUNDOFF / (1 - (numbers - 1) * ROUNDOFF)
    assert any_error("sum", np.array([plain]), exact, by_element=False).relative_error <= gamma * condition


def work_of(operation: Operation) -> Workload:
    found = find(operation.name)
    weights, inputs = draw_weights(found.spec, 1), draw_inputs(found.spec, 1, 2)
    return Workload(found.spec, found.package, 1, "infer", "fp32", weights, inputs)


def possible(work: Workload) -> float:
    def wide(arrays: Any) -> dict[str, Array]:
        return {name: array.astype(np.float64) for name, array in arrays.items()}

    forward = reference_at(work.package).forward
    return digits(smallest_error(forward, wide(work.weights), wide(work.inputs), ROUNDOFF, by_element=False), ROUNDOFF)


@pytest.mark.parametrize(("each", "left"), [(655.0, 11 * math.log10(2)), (656.0, 0.0)])
def test_a_result_beyond_the_largest_number_of_a_type_leaves_no_digit(each: float, left: float) -> None:
    inputs, roundoff = {"numbers": np.full((1, 100), each)}, 2.0**-11

    def total(_weights: Any, given: Any) -> dict[str, Array]:
        return {"result": np.full(1, given["numbers"][0, :1].sum() * 100)}

    largest = float(np.finfo(np.float16).max)  # 65,504
    found = smallest_error(total, {}, inputs, roundoff, by_element=False, largest_number=largest)
    assert digits(found, roundoff) == pytest.approx(left)


def named(name: str) -> Operation:
    found = operation_named(name)
    assert found is not None
    return found


@pytest.mark.parametrize("rows", [3, 5, 7])
def test_the_digits_that_a_system_leaves_are_those_of_its_condition_number(rows: int) -> None:
    work = work_of(named(f"hard-solve-hilbert-n{rows}"))
    by_theory = -math.log10(ROUNDOFF * np.linalg.cond(work.weights["a"].astype(np.float64)))
    assert possible(work) == pytest.approx(max(by_theory, 0.0), abs=1.3)


def kept(work: Workload, answer: Array) -> float:
    [(name, expected)] = reference_answers(work).items()
    return digits(any_error(name, answer, expected, by_element=False).relative_error, ROUNDOFF)


def test_the_formulas_that_are_known_to_lose_digits_lose_them_and_the_stable_ones_do_not() -> None:
    """In float32, by hand."""
    variance, softmax, total = (
        work_of(named(name))
        for name in ("hard-variance-r8-n500-o1000", "hard-softmax-r8-n50-s100", "hard-logsumexp-r8-n50-o1000")
    )
    numbers = variance.inputs["numbers"]
    centred = numbers - numbers.mean(-1, keepdims=True)
    assert kept(variance, (numbers**2).mean(-1) - numbers.mean(-1) ** 2) < 2
    assert kept(variance, (centred**2).mean(-1)) > possible(variance) - 1
    with np.errstate(over="ignore", invalid="ignore"):
        scores = softmax.inputs["numbers"]
        assert kept(softmax, np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)) == 0
        shifted = np.exp(scores - scores.max(-1, keepdims=True))
        assert kept(softmax, shifted / shifted.sum(-1, keepdims=True)) > possible(softmax) - 1
        large = total.inputs["numbers"]
        assert kept(total, np.log(np.exp(large).sum(-1))) == 0
    largest = large.max(-1)
    assert kept(total, largest + np.log(np.exp(large - largest[:, None]).sum(-1))) > 6
