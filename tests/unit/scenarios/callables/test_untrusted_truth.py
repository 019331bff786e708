"""Which answers are right: another order of a sum is, half the precision is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fairlap.errors import InvalidRequest
from fairlap.scenarios.callables.untrusted.layout import built, layout_of, leaves_of
from fairlap.scenarios.callables.untrusted.truth import Reference

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def product(a: Array, b: Array) -> Array:
    found: Array = a @ b
    return found


def in_another_order(a: Array, b: Array) -> Array:
    order = RNG.permutation(a.shape[1])
    found: Array = a[:, order] @ b[order]
    return found


def matrices(dtype: Any) -> tuple[Array, Array]:
    return RNG.standard_normal((20, 300)).astype(dtype), RNG.standard_normal((300, 20)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_a_sum_in_another_order_is_right_in_every_precision(dtype: Any) -> None:
    for _ in range(50):
        given = matrices(dtype)
        assert Reference(product, given).truth(given).why_wrong([in_another_order(*given)]) == ""


@pytest.mark.parametrize(("dtype", "lower"), [(np.float32, np.float16), (np.float64, np.float32)])
def test_a_lower_precision_is_wrong(dtype: Any, lower: Any) -> None:
    for _ in range(50):
        a, b = matrices(dtype)
        answer = product(a.astype(lower), b.astype(lower)).astype(dtype)
        assert Reference(product, (a, b)).truth((a, b)).why_wrong([answer])


def test_a_sum_that_cancels_may_be_off_by_what_its_terms_round_to() -> None:
    for _ in range(200):
        values = RNG.standard_normal(200)
        reference = Reference(lambda x: float(x.sum()), values)
        assert reference.truth(values).why_wrong([np.array(sum(values.tolist()))]) == ""


def test_whole_numbers_are_exact_and_one_element_is_enough_to_be_wrong() -> None:
    numbers = RNG.integers(0, 9, 50)
    truth = Reference(np.sort, numbers).truth(numbers)
    answer = np.sort(numbers)
    assert truth.why_wrong([answer]) == ""
    answer[17] += 1
    assert truth.why_wrong([answer])


def test_not_a_number_is_right_only_where_the_truth_is_not_one() -> None:
    values = np.array([-1.0, 4.0])
    with np.errstate(invalid="ignore"):
        truth = Reference(np.sqrt, values).truth(values)
    assert truth.why_wrong([np.array([np.nan, 2.0])]) == ""
    assert truth.why_wrong([np.array([np.nan, np.nan])])
    assert truth.why_wrong([np.array([0.0, 2.0])])


def test_a_reference_that_writes_into_its_arguments_changes_no_truth() -> None:
    def hasty(x: Array) -> Array:
        x *= 2
        return x

    given = RNG.standard_normal(5)
    kept = given.copy()
    assert Reference(hasty, given).truth(given).why_wrong([2 * kept]) == ""
    assert (given == kept).all()


def test_arguments_are_laid_out_and_built_again_as_they_were_nested() -> None:
    tree = {"x": (np.arange(3), [1.5, True]), "name": "text"}
    layout = layout_of(tree, "it")
    leaves = leaves_of(tree)
    assert len(layout.leaves) == len(leaves) == 3
    again = built(layout.nesting, lambda place: leaves[place])
    assert again["name"] == "text"
    assert again["x"][1] == [1.5, True]


@pytest.mark.parametrize("odd", [object(), np.array([None]), 2**80])
def test_what_is_no_array_tensor_or_number_is_refused(odd: object) -> None:
    with pytest.raises(InvalidRequest) as refused:
        layout_of((odd,), "it")
    assert refused.value.code == "E_REQUEST"
